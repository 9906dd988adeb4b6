package act

import (
	"fmt"

	"github.com/daimon-go/daimon/internal/audit"
)

func init() {
	audit.Scheduler = func(s any) error { return s.(*Scheduler).audit() }
	audit.Waits = func(w any) bool {
		x := w.(Waker)
		return x.t != nil && x.t.turn == x.turn && x.t.state == waiting
	}
}

// audit looks whether the parts of s agree with each other: each task in the queue that its state says and in
// no other, and as many of each kind as are counted. It is for the time between two Steps.
func (s *Scheduler) audit() error {
	queued := map[*Task]int{}
	for name, q := range map[string]*queue{"ready": &s.ready, "demonic": &s.demonic, "demons": &s.demons, "spent": &s.spent} {
		for t := q.head; t != nil; t = t.next {
			if queued[t]++; queued[t] > 1 {
				return fmt.Errorf("%v is in more than one place of the queues, at last in %s", t, name)
			}
			if (t.flags&isDemon != 0) == (name == "ready") && name != "spent" {
				return fmt.Errorf("%v is in the queue %s, which is not that of its kind", t, name)
			}
			if t.state != ready && name != "spent" || t.state != spent && name == "spent" {
				return fmt.Errorf("%v is in the queue %s with state %d", t, name, t.state)
			}
			if t == q.tail {
				break
			}
		}
	}
	live, installed, spending := 0, 0, 0
	var wrong error
	s.slab.all(func(t *Task) {
		if (t.state == ready || t.state == spent) != (queued[t] == 1) {
			wrong = fmt.Errorf("%v is in %d queues with state %d", t, queued[t], t.state)
		}
		for tm := t.timers; tm != nil; tm = tm.next {
			if !tm.Armed() || tm.task != t {
				wrong = fmt.Errorf("%v lists a timer that is not armed for it", t)
			}
		}
		switch {
		case t.state == abandoned:
		case t.flags&isDemon == 0:
			live++
		case t.flags&background == 0:
			installed++
		}
		if t.state == spent {
			spending++
		}
	})
	if wrong == nil && (live != s.live || installed != s.installed || spending != s.spending) {
		wrong = fmt.Errorf("there are %d tasks, %d demons and %d spent, counted are %d, %d and %d", live, installed, spending,
			s.live, s.installed, s.spending)
	}
	return wrong
}
