package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
)

// From when on something is a finding.
const (
	longWait  = 10 * time.Second
	longReady = time.Second
	muchTurns = 10_000 // a second
)

// find returns what needs attention in a Report, in sentences; before is an earlier one, or nil.
func (r *report) find(before *report, places int) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, s := range r.Schedulers {
		if s.Late > 0 && s.State != "not running" {
			say("Scheduler %d does not answer: it is %s. Its figures are %v old.", s.Index, s.State, round(s.Late))
		}
	}
	if n := r.counts()["offloads"]; places > 0 && n > uint64(places) {
		say("%d functions are offloaded, and only %d can run at a time: the others wait.", n, places)
	}
	if before != nil {
		r.seen = before.seen
	}
	if slices.ContainsFunc(r.Schedulers, func(s *scheduler) bool { return len(s.Tasks)+len(s.Processes) > 0 }) { // they were asked for
		r.look(r.seen)
	}
	if r.seen != nil && r.Time.Sub(r.seen.at) < 2*r.seen.rest {
		all = append(all, r.seen.findings...)
	}
	if before != nil {
		r.findRates(before, say)
	}
	return all
}

// seen is the result of a poll of tasks and processes, kept for the next poll and for the Reports until then.
type seen struct {
	at       time.Time
	rest     time.Duration // until the next poll, if nobody asks for tasks
	findings []string      // about tasks and processes
	marks    [][]mark      // of each scheduler's tasks, in the order of their ids
	uptimes  []time.Duration
	ready    map[spell]time.Time   // tasks that were ready, since when at least
	full     map[mailbox]time.Time // mailboxes that were full at each poll, since when
}

// mark says how many turns a task has had.
type mark struct {
	id, born uint32
	turns    uint64
}

// spell is the time between two turns of a task.
type spell struct {
	scheduler int
	id        uint32
	born      uint32
	last      uint32
}

// mailbox is that of a process. Of two systems of processes in one program, both may have the ID.
type mailbox struct {
	kind string
	id   uint64
}

// since notes in now that something is so, as of the time at, and returns for how long it has been so at each poll:
// before has the notes of the previous poll. They are kept in Reports alone.
func since[K comparable](now, before map[K]time.Time, of K, at time.Time) time.Duration {
	begun, ok := before[of]
	if !ok {
		begun = at
	}
	now[of] = begun
	return at.Sub(begun)
}

// look makes r.seen, and compares it with what was seen before, nil if nothing was.
func (r *report) look(before *seen) {
	if before == nil {
		before = &seen{}
	}
	n := 0
	for _, s := range r.Schedulers {
		n += len(s.Tasks) + len(s.Processes)
	}
	r.seen = &seen{at: r.Time, rest: max(ofTasks, time.Duration(n)*ofATask), ready: map[spell]time.Time{}, full: map[mailbox]time.Time{}}
	say := func(format string, args ...any) {
		r.seen.findings = append(r.seen.findings, fmt.Sprintf(format, args...))
	}
	r.findTasks(before, say)
	r.findFull(before, say)
}

// same is what is found of one or many tasks of a kind, which are said once.
type same struct {
	kind, what string
}

// worst is how many there are, and the worst of them.
type worst struct {
	n      int
	task   *task
	amount float64 // how long, or how often
}

// findTasks says what many tasks of one kind have in common once.
func (r *report) findTasks(before *seen, say func(string, ...any)) {
	found := map[same]*worst{}
	var order []same
	note := func(t *task, what string, amount float64) {
		w := found[same{t.Kind, what}]
		if w == nil {
			w = &worst{}
			found[same{t.Kind, what}] = w
			order = append(order, same{t.Kind, what})
		}
		if w.n++; w.n == 1 || amount > w.amount {
			w.task, w.amount = t, amount
		}
	}
	for i, s := range r.Schedulers {
		r.seen.mark(s)
		for j := range s.Tasks {
			t := &s.Tasks[j]
			if rate := r.seen.rate(before, i, j); rate > muchTurns {
				note(t, "", rate)
			}
			switch {
			case t.State == "ready" && !t.Demon:
				// When it became so is not known; but one that was ready at an earlier poll, and has had no turn since, has been
				// ready all the time.
				long := since(r.seen.ready, before.ready, spell{t.Scheduler, t.ID, t.born, t.last}, r.Time)
				if long > longReady {
					note(t, "ready without a turn", long.Seconds())
				}
			case t.Queued > 0 && t.Stuck > longWait:
				note(t, "connected to a peer that does not read", t.Stuck.Seconds())
			case t.State == "waiting" && t.Since > longWait && !t.Demon:
				if what := t.waitsForNothing(); what != "" {
					note(t, what, t.Since.Seconds())
				}
			}
		}
	}
	for _, g := range order {
		w := found[g]
		t := w.task
		name := t.number()
		if t.Peer != "" {
			name += " of " + t.Peer
		}
		long := round(time.Duration(w.amount * float64(time.Second)))
		switch {
		case g.what != "" && w.n == 1:
			say("1 task of %s has been %s for up to %v: %s.", g.kind, g.what, long, name)
		case g.what != "":
			say("%d tasks of %s have been %s for up to %v: %s.", w.n, g.kind, g.what, long, name)
		case w.n == 1:
			say("1 task of %s takes %.0f turns a second: %s. It yields, wakes itself, or has events without a pause.",
				g.kind, w.amount, name)
		default:
			say("%d tasks of %s take up to %.0f turns a second: %s. They yield, wake themselves, or have events without a pause.",
				w.n, g.kind, w.amount, name)
		}
	}
}

// waitsForNothing says what a task waits for that nothing known can wake, or only the end of its peer, which httpd
// notices for each handler; otherwise it is "".
func (t *task) waitsForNothing() string {
	for _, w := range t.Waits {
		if !strings.HasPrefix(w, facts.EndOf) {
			return ""
		}
	}
	if len(t.Waits) > 0 {
		return "waiting for nothing that is known but the end of its peer"
	}
	return "waiting for nothing that is known"
}

// mark keeps how many turns the tasks of a scheduler have had.
func (x *seen) mark(s *scheduler) {
	marks := make([]mark, len(s.Tasks))
	for i, t := range s.Tasks {
		marks[i] = mark{t.ID, t.born, t.turns}
	}
	x.marks, x.uptimes = append(x.marks, marks), append(x.uptimes, s.Uptime)
}

// rate returns how many turns a second a task has had since it was seen before, 0 if it was not. It is the one at j of the
// scheduler at i.
func (x *seen) rate(before *seen, i, j int) float64 {
	if i >= len(before.marks) {
		return 0
	}
	now := x.marks[i][j]
	at, ok := slices.BinarySearchFunc(before.marks[i], now.id, func(m mark, id uint32) int { return cmp.Compare(m.id, id) })
	passed := x.uptimes[i] - before.uptimes[i]
	if !ok || before.marks[i][at].born != now.born || passed <= 0 {
		return 0
	}
	return float64(now.turns-before.marks[i][at].turns) / passed.Seconds()
}

// mostFull bounds the mailboxes that are named.
const mostFull = 10

// findFull says which mailboxes are full, and for how long each has been so whenever it was polled.
func (r *report) findFull(before *seen, say func(string, ...any)) {
	n := 0
	defer func() {
		if n > mostFull {
			say("%d more mailboxes are full.", n-mostFull)
		}
	}()
	for _, s := range r.Schedulers {
		for i := range s.Processes {
			p := &s.Processes[i]
			if p.Limit == 0 || p.Mailbox < p.Limit {
				continue
			}
			long := since(r.seen.full, before.full, mailbox{p.Kind, p.ID}, r.Time)
			if n++; n > mostFull {
				continue
			}
			if long > 0 {
				say("The mailbox of process %d (%s) has been full at every look for %v: %d messages.", p.ID, p.Kind, round(long), p.Mailbox)
			} else {
				say("The mailbox of process %d (%s) is full: %d messages.", p.ID, p.Kind, p.Mailbox)
			}
		}
	}
}

// findRates compares two Reports.
func (r *report) findRates(before *report, say func(string, ...any)) {
	const full, free = 0.98, 0.5
	var busy []int
	idle := false
	for i, s := range r.Schedulers {
		if i >= len(before.Schedulers) || s.Late > 0 {
			continue
		}
		was := before.Schedulers[i]
		passed := s.Uptime - was.Uptime
		if passed <= 0 {
			continue
		}
		load := 1 - float64(s.Idle.all()-was.Idle.all())/float64(passed)
		if load > full {
			busy = append(busy, s.Index)
		}
		idle = idle || load < free
	}
	if len(busy) > 0 && idle {
		say("Scheduler %s works without a pause, and another one is idle most of the time.", strings.Trim(fmt.Sprint(busy), "[]"))
	}
}
