package act

import (
	"reflect"
	"time"

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
func (i *internals) Counts(add func(name string, n uint64)) {
	s := i.of()
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
		if c, ok := v.(counter); ok {
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

func (s *Scheduler) status(t *Task) status {
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

// serving is an action that belongs to a service.
type serving interface {
	Service() string // its name, such as "tcp 127.0.0.1:8080"
}

// connected is an action that serves a connection. The methods may be called in its turn, while a function runs that it has
// offloaded, and when it has failed. Only Peer makes a system call.
type connected interface {
	Peer() string         // the address of the other end; "": not known
	Descriptor() int      // of a file; -1: none
	Still() time.Duration // for how long no byte has gone either way; less than 0: not known
	Undisturbed() bool    // it is not to know of a shutdown: Task.Order returns nil. Its own Stop is called
}

func undisturbed(a Action) bool {
	x, ok := a.(connected)
	return ok && x.Undisturbed()
}

// What the value of a Local may be in addition to an io.Closer.
type (
	// An accounter calls KeepRunning for something of its own. Account counts and names that in c, whose Order is in force, and
	// returns how much of KeepRunning's count is for it. It is called at the end of Run, before anything is dropped.
	accounter interface {
		Account(c *shutdown.Cut) (holds int)
	}

	// A leaver has to do with values of other schedulers. Leave is called at the end of Run, which other schedulers may
	// not have reached, and when a shutdown ends in Step: nothing has a turn here before the next Run or Step, or ever,
	// if the scheduler is broken.
	leaver interface{ Leave() }

	// A lingerer has connections that were closed but still exist: their last bytes are on their way, or their peers
	// have not closed. EachClosing calls visit for the ones in n places, starting at from, with how long no byte has
	// gone either way. It returns where to go on, 0 at the end.
	lingerer interface {
		EachClosing(from, n int, visit func(still time.Duration, x Describer)) (next int)
	}

	// A counter calls add for each of its counts. A name has lower-case words with underscores; one that ends in _total
	// only grows, any other is the present number. Counts of one name are added up, across schedulers too.
	counter interface {
		Counts(add func(name string, n uint64))
	}
)

// tied lives on the thread of Run or Step and nowhere else, such as coroutines. Untie ends what can be ended without loss, and
// reports whether nothing is left that lives there. It is called on that thread, whenever Run, Step or Close is about to return.
type tied interface{ Untie() bool }

// Order returns the shutdown request that the scheduler obeys, nil if none; for how long it has; and how much time is
// left, 0 if it has no such bound.
func (i *internals) Order() (order shutdown.Order, since, left time.Duration) {
	s := i.of()
	now := s.clock.Monotonic()
	if s.terms.Until > 0 {
		left = max(0, s.terms.Until-now)
	}
	return s.order, now - s.ordered, left
}

// kind is Kind of [internals].
func (t *Task) kind() string {
	a := t.action
	if x, ok := a.(serving); ok {
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
