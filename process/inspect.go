package process

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// Counts implements facts.Counter. Counts that belong to no scheduler are added to the first one's.
func (l *local) Counts(add func(name string, n uint64)) {
	r := l.runner
	if r == nil {
		return
	}
	made, ended, dropped, letters := r.made.Load(), r.ended.Load(), r.dropped.Load(), r.letters.Load()
	if r.s.Index() == 0 {
		out := &r.sys.outside
		add("processes", uint64(max(0, r.sys.Alive())))
		made, ended = made+out.made.Load(), ended+out.ended.Load()
		dropped, letters = dropped+out.dropped.Load(), letters+out.letters.Load()
	}
	add("processes_queued", uint64(r.queue.length()))
	add("processes_spawned_total", uint64(made))
	add("processes_ended_total", uint64(ended))
	add("processes_stolen_total", uint64(r.stolen.Load()))
	add("process_turns_total", r.turns)
	add("process_messages_total", r.messages)
	add("process_messages_dropped_total", uint64(dropped)) // for any reason
	add("process_dead_letters_total", uint64(letters))     // of these, to processes that had ended
	add("process_handoffs_total", uint64(r.handed.Load()))
}

// List implements facts.Lister: it lists the processes that had their first turn here, wherever they are now.
func (l *local) List(again bool, visit func(row any) bool) (more bool) {
	r := l.runner
	if r == nil {
		return false
	}
	r.watched = true
	all := &r.sys.registries[r.s.Index()]
	for c := all.next(again); c != nil; c = all.next(false) {
		if c.show(&l.shown) && !visit(&l.shown) {
			return true
		}
	}
	return false
}

// show fills row with the state of c, and reports whether c is alive. Any thread. An action may be in its turn, so only
// its type is read.
func (c *core) show(row *facts.Process) (alive bool) {
	*row = facts.Process{}
	w := c.lock()
	if w&states == dead {
		c.unlock(w)
		return false
	}
	row.ID, row.State = c.id, [...]string{queued >> 14: "queued", sleeping >> 14: "sleeping", running >> 14: "running"}[w&states>>14]
	if w&(states|blocked) == sleeping|blocked {
		row.State = "blocked"
	}
	row.Mailbox, row.Limit = c.body.length(w&states == sleeping)
	if x := c.rare; x != nil {
		row.Name, row.Dropped = x.name, x.refused
		if x.child != nil {
			row.Restarts = max(0, x.child.starts-1)
		}
	}
	action := c.body.action()
	c.unlock(w)
	row.Turn = time.Duration(c.took.Load()) * time.Microsecond
	if x, ok := action.(interface{ kind() string }); ok {
		row.Kind = x.kind()
	} else if _, named := action.(fmt.Stringer); named {
		row.Kind = fmt.Sprintf("%T", action)
	} else {
		row.Kind = act.Name(action)
	}
	return true
}

func (r *runner) Describe(d *act.Description) { d.WaitsFor("a process that has something to do") }
