package act

import "fmt"

// Audit checks, for simulations, that the parts of the scheduler agree with each other: each task is in the queue that its state
// demands and in no other, and there are as many of each kind as are counted. It is called between two Steps.
func (s internals) Audit() (wrong error) {
	queued := map[*Task]*queue{}
	for _, q := range []*queue{&s.ready, &s.demonic, &s.demons, &s.exhausted} {
		for t := q.head; t != nil; t = t.next {
			if queued[t] != nil {
				return fmt.Errorf("%v is in two places of the queues", t)
			}
			if queued[t] = q; t == q.tail {
				break
			}
		}
	}
	var live, installed, out, lasts int
	s.slab.all(func(t *Task) {
		var right bool
		switch q := queued[t]; t.state {
		case ready:
			right = q == &s.ready && !t.Demon() || (q == &s.demonic || q == &s.demons) && t.Demon()
		case exhausted:
			right = q == &s.exhausted
			out++
		default:
			right = q == nil
		}
		if !right {
			wrong = fmt.Errorf("%v has state %d, and is in another queue than that demands", t, t.state)
		}
		for n := t.timers; n != nil; n = n.Of.next {
			if !n.Armed() || n.Of.task != t {
				wrong = fmt.Errorf("%v lists a timer that is not armed for it", t)
			}
		}
		switch {
		case t.state == abandoned:
			return
		case !t.Demon():
			live++
		case t.flags&background == 0:
			installed++
		}
		if t.flags&last != 0 {
			lasts++
		}
	})
	if wrong == nil && (live != s.live || installed != s.installed || out != s.exhaustedCount || lasts != s.lasts) {
		wrong = fmt.Errorf("there are %d tasks and %d demons, %d of them out of turns and %d last; counted are %d, %d, %d and %d",
			live, installed, out, lasts, s.live, s.installed, s.exhaustedCount, s.lasts)
	}
	return wrong
}
