package act

import "fmt"

// Audit checks, for simulations, that the parts of the scheduler agree with each other: each task is in the queue that its state
// demands and in no other, and there are as many of each kind as are counted. It is called between two Steps.
func (s internals) Audit() error {
	queued := map[*Task]bool{}
	for _, q := range []struct {
		of    *queue
		state state
		kind  flags // of the tasks in it
	}{{&s.ready, ready, 0}, {&s.demonic, ready, isDemon}, {&s.demons, ready, isDemon}, {&s.exhausted, exhausted, 0}} {
		for t := q.of.head; t != nil; t = t.next {
			switch {
			case queued[t]:
				return fmt.Errorf("%v is in two places of the queues", t)
			case t.state != q.state:
				return fmt.Errorf("%v is in a queue of state %d with state %d", t, q.state, t.state)
			case t.flags&isDemon != q.kind && q.state == ready:
				return fmt.Errorf("%v is in a queue that is not for its kind", t)
			}
			queued[t] = true
			if t == q.of.tail {
				break
			}
		}
	}
	live, installed, out, lasts := 0, 0, 0, 0
	var wrong error
	s.slab.all(func(t *Task) {
		if (t.state == ready || t.state == exhausted) != queued[t] {
			wrong = fmt.Errorf("%v has state %d, and in a queue: %v", t, t.state, queued[t])
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
		if t.state == exhausted {
			out++
		}
		if t.flags&last != 0 && t.state != abandoned {
			lasts++
		}
	})
	if wrong == nil && (live != s.live || installed != s.installed || out != s.exhaustedCount || lasts != s.lasts) {
		wrong = fmt.Errorf("there are %d tasks and %d demons, %d of them out of turns and %d last; counted are %d, %d, %d and %d",
			live, installed, out, lasts, s.live, s.installed, s.exhaustedCount, s.lasts)
	}
	return wrong
}
