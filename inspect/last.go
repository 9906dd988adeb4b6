package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
)

// line is the line of an event in the text, or of several in a row that differ only in their tasks.
type line struct {
	at      time.Duration // since the probe was made; less than 0: not known
	what    event
	outcome string
	kind    string
	n       int
	tasks   []uint32 // of the first named
}

// named bounds the tasks that a line names.
const named = 8

// lines returns the lines for events.
func (w *watched) lines(events []event) (all []line) {
	at := times(events)
	for i, e := range events {
		l := line{at: at[i], what: e.what(), n: 1}
		switch what := e.what(); {
		case what == sleepEnded:
			continue // the line of its begin says how long it was
		case what == others:
			l.n = int(e.count())
		case what == sleepBegan:
			l.outcome = lasted(e, events[i+1:])
		case what >= inTurn:
			l.kind, l.tasks = w.kindName(e.kind()), []uint32{e.id()}
			if what == inTurn {
				l.outcome = outcome(e.directive(), i == len(events)-1)
			}
		}
		if n := len(all); n > 0 && all[n-1].what == l.what && all[n-1].outcome == l.outcome && all[n-1].kind == l.kind && l.what != others {
			all[n-1].n++
			all[n-1].tasks = append(all[n-1].tasks, l.tasks...)
			continue
		}
		all = append(all, l)
	}
	return all
}

// times returns when each of the events was. Most have no time of their own: an event of a sleep was at its end, and
// any other after the latest pass or sleep, and before the next one.
func times(events []event) []time.Duration {
	at := make([]time.Duration, len(events))
	now, open := time.Duration(-1), 0 // from open on the next time counts
	for i, e := range events {
		at[i] = now
		if !e.isTimed() {
			continue
		}
		if now < 0 || events[max(open-1, 0)].what() == sleepBegan {
			for j := open; j < i; j++ {
				at[j] = e.time()
			}
		}
		now = e.time()
		at[i], open = now, i+1
	}
	return at
}

// lasted is how long a sleep was, if it has ended.
func lasted(began event, after []event) string {
	for _, e := range after {
		if e.isTimed() {
			return fmt.Sprintf("for %v", round(e.time()-began.time()))
		}
	}
	return ""
}

// outcome says how a turn has ended. last says that nothing has happened after it.
func outcome(v directive, last bool) string {
	switch {
	case v == byPanic:
		return "panicked"
	case v > act.Failed:
		return "no Directive"
	case v != unended:
		return v.String()
	case last:
		return "has not ended"
	}
	return ""
}

// writeLast writes the last events of a scheduler, the latest last. now is on the clock of the Group.
func (p *probe) writeLast(out io.Writer, events []event, now time.Duration) {
	rows := newTable("last", "BEFORE", "EVENT", "N", "OUTCOME", "KIND", "TASKS")
	for _, l := range p.lines(events) {
		before := "-"
		if l.at >= 0 {
			before = fmt.Sprint(round(max(0, now-p.start-l.at)))
		}
		rows.add(before, eventNames[l.what], l.n, l.outcome, l.kind, l.taskList())
	}
	rows.writeTo(out)
}

func (l *line) taskList() string {
	text := strings.Trim(fmt.Sprint(l.tasks[:min(named, len(l.tasks))]), "[]")
	if len(l.tasks) > named {
		text += " …"
	}
	return text
}

// writeLast writes the last events of schedulers. Events that rec has are not read again; rec may be nil.
func writeLast(out io.Writer, desks []*desk, clock act.Clock, rec *recording) {
	fmt.Fprintln(out, "The latest event is the last. Those without a clock of their own have the time of the pass before.")
	for _, d := range desks {
		p := d.probe
		if rec != nil && rec.of == p {
			fmt.Fprintf(out, "\nScheduler %d, then\n", p.index)
			p.writeLast(out, rec.events, rec.now)
			continue
		}
		fmt.Fprintf(out, "\nScheduler %d, %s\n", p.index, p.state())
		events := p.lastEvents()
		p.writeLast(out, events, clock.Monotonic())
	}
}
