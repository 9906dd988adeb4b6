package act

import (
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/shutdown"
)

// counts are numbers that a Trace does not see. Only the scheduler's thread touches them.
type counts struct {
	passes, posts, timers, remoteEvents uint64
	offloads, returned                  uint64 // functions given to an Executor, and how many of them have returned
	ended                               uint64 // tasks that have finished or were dropped
}

// readyCounted bounds the tasks that are counted one by one: a question about a scheduler must not hold it up.
const readyCounted = 10_000

// Counts calls add for what the scheduler and its Locals have counted, and for the length of the ready queue, up to readyCounted.
func (s internals) Counts(add func(name string, n uint64)) {
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
		add("offloads_running", uint64(x.Running())) // without the functions of Reserve
	}
	for _, v := range s.made {
		if c, ok := v.(facts.Counter); ok {
			c.Counts(add)
		}
	}
}

// status is what a scheduler knows of one of its tasks.
type status struct {
	State  string        // ready, running, waiting, offloaded, out of turns, abandoned
	Told   bool          // of the shutdown in force
	Timers int           // armed
	Due    time.Duration // from now until the first of them
	Turns  uint64        // of all tasks that have had this place
}

// Status returns what the scheduler knows of t.
func (s internals) Status(t *Task) status {
	d := status{State: stateNames[t.state], Told: s.order != nil && t.flags&untold == 0, Turns: t.turn}
	for tm := t.timers; tm != nil; tm = tm.next {
		if due := max(0, tm.When()-s.now); d.Timers == 0 || due < d.Due {
			d.Due = due
		}
		d.Timers++
	}
	return d
}

var stateNames = [...]string{
	ready: "ready", running: "running", waiting: "waiting", offloaded: "offloaded",
	exhausted: "out of turns", abandoned: "abandoned",
}

// Order returns the shutdown request that the scheduler obeys, nil if none; for how long it has; and how much time is
// left, 0 if it has no such bound.
func (s internals) Order() (order shutdown.Order, since, left time.Duration) {
	now := s.clock.Monotonic()
	if s.terms.until > 0 {
		left = max(0, s.terms.until-now)
	}
	return s.order, now - s.ordered, left
}
