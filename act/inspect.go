package act

import (
	"reflect"
	"time"

	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/shutdown"
)

// counts are of what a scheduler has done and a Trace does not see. They are plain numbers of its thread.
type counts struct {
	passes, posts, timers, remoteEvents uint64
	offloads, returned                  uint64 // functions given to an Executor, and those that have returned
	ended                               uint64 // tasks that have finished or were dropped
}

// readyCounted bounds the tasks that are counted one by one: a question about a scheduler must not hold it up.
const readyCounted = 10_000

// eachCount calls add for each of the counts, and for the length of the ready queue, up to readyCounted.
func (s *Scheduler) eachCount(add func(name string, n uint64)) {
	ready := uint64(0)
	for t := s.ready.head; t != nil && ready < readyCounted; t = t.next {
		if ready++; t == s.ready.tail {
			break
		}
	}
	add("ready", ready)
	add("tasks", uint64(s.live))
	add("demons", uint64(s.installed))
	add("held", uint64(s.held))
	add("turns_total", s.ended-s.counts.posts)
	add("passes_total", s.counts.passes)
	add("posts_total", s.counts.posts)
	add("timers", uint64(s.timers.Armed()))
	add("timers_total", s.counts.timers)
	add("remote_events_total", s.counts.remoteEvents)
	add("offloads_total", s.counts.offloads)
	add("offloads", s.counts.offloads-s.counts.returned) // queued and running
	if x, ok := s.group.cfg.Executor.(executor); ok && s.index == 0 {
		add("offloads_running", uint64(x.Running())) // those of Reserve are not among them
	}
}

// status is what a scheduler knows of one of its tasks.
type status struct {
	State  string        // ready, running, waiting, offloaded, out of turns, abandoned
	Told   bool          // of the order in force
	Timers int           // armed
	Due    time.Duration // from now until the first of them
	Turns  uint64        // of all tasks that have had this place
}

func (s *Scheduler) describe(t *Task) status {
	d := status{State: stateNames[t.state], Told: s.order != nil && t.flags&untold == 0, Turns: t.turn}
	for tm := t.timers; tm != nil; tm = tm.next {
		if d.Timers++; d.Timers == 1 || tm.When() < d.Due {
			d.Due = tm.When()
		}
	}
	if d.Timers > 0 {
		d.Due = max(0, d.Due-s.now)
	}
	return d
}

var stateNames = [...]string{
	ready: "ready", running: "running", waiting: "waiting", offloaded: "offloaded",
	exhausted: "out of turns", abandoned: "abandoned",
}

// inForce is Order of [internals].
func (s *Scheduler) inForce() (order shutdown.Order, since, left time.Duration) {
	now := s.clock.Monotonic()
	if s.terms.Until > 0 {
		left = max(0, s.terms.Until-now)
	}
	return s.order, now - s.ordered, left
}

// kind is Kind of [internals].
func (t *Task) kind() string {
	a := t.action
	if x, ok := a.(hook.Serving); ok {
		if t.flags&isDemon != 0 {
			return "demon of " + x.Service()
		}
		return x.Service()
	}
	of := reflect.TypeOf(a)
	if of.Kind() == reflect.Func {
		return Name(a)
	}
	return of.String()
}
