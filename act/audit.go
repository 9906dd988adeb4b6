package act

import (
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/thread"
)

func init() {
	hook.Tie = tie
	hook.Crashes = func(s any) bool { return s.(*Scheduler).crash }
	hook.TurnCount = func(s any) uint64 { s.(*Scheduler).touch(); return s.(*Scheduler).ended }
	hook.Failure = func(t any) error { return t.(*Task).s.failure() }
	hook.Rests = func(s any) bool { return s.(*Scheduler).asleep.Load() || s.(*Scheduler).at.Load() == 0 }
	hook.EachWaiting = func(s any, visit func(any)) {
		s.(*Scheduler).slab.all(func(t *Task) {
			if t.state == waiting {
				visit(t)
			}
		})
	}
	hook.Child = func(a any) any {
		if parent, ok := a.(interface{ child() Action }); ok {
			return parent.child()
		}
		return nil
	}
	hook.AtPassEnd = func(s any, f func()) { s.(*Scheduler).passEnds = append(s.(*Scheduler).passEnds, f) }
	hook.Place = func(t any) uint32 { return t.(*Task).s.slab.place(t.(*Task)) }
	hook.Kind = func(t any) string { return t.(*Task).kind() }
	hook.EachTask = func(s any, from uint32, visit func(hook.Task) bool) uint32 {
		return s.(*Scheduler).eachTask(from, visit)
	}
	hook.EachLocal = func(s any, visit func(any)) {
		for _, v := range s.(*Scheduler).made {
			visit(v)
		}
	}
	hook.LastReady = func(s any) any {
		if q := &s.(*Scheduler).ready; q.head != nil {
			return q.tail
		}
		return nil
	}
	hook.Counts = func(s any, add func(string, uint64)) { s.(*Scheduler).eachCount(add) }
	hook.Idler = func(s any) any { return s.(*Scheduler).idler.Load().Idler }
	hook.Order = func(s any) (any, time.Duration, time.Duration) {
		if o, since, left := s.(*Scheduler).inForce(); o != nil {
			return o, since, left
		}
		return nil, 0, 0
	}
	hook.EndsLast = func(t any) bool { return t.(*Task).flags&last != 0 }
	hook.EndWithOthers = func(t any) { t.(*Task).s.endWithOthers(t.(*Task)) }
	hook.Progress = func(s any) { s.(*Scheduler).noteProgress() }
	audit.Scheduler = func(s any) error { return s.(*Scheduler).audit() }
	audit.Concluded = func(s any) uint { return s.(*Scheduler).concluded }
	audit.Waits = func(w any) bool {
		x := w.(*Waker)
		return x.t != nil && x.t.turn == x.turn && x.t.state == waiting
	}
}

func tie(scheduler any, x hook.Tied) {
	s := scheduler.(*Scheduler)
	s.touch()
	if !s.inside {
		s.thread = thread.ID() // a set-up function is called before Run
	}
	if !slices.Contains(s.tied, x) {
		s.tied = append(s.tied, x)
	}
}

// audit checks that the parts of s agree with each other: each task is in the queue that its state demands and in no other,
// and there are as many of each kind as are counted. It is called between two Steps.
func (s *Scheduler) audit() error {
	queued := map[*Task]bool{}
	for _, q := range []struct {
		of    *queue
		state state
		kind  flags // of those in it
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
