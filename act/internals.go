package act

import (
	"reflect"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Internals is for the other packages of Daimon. It is not part of the API: its methods may change with every release.
func (s *Scheduler) Internals() internals { return internals{s} }

// internals has methods that only packages of this module call: on the scheduler's thread, except where others are named.
type internals struct{ *Scheduler }

// tied lives on the thread of Run or Step and nowhere else, such as coroutines. Untie ends what can be ended without loss, and
// reports whether nothing is left that lives there. It is called on that thread, whenever Run, Step or Close is about to return.
type tied interface{ Untie() bool }

// Tie registers x, which lives on the thread of Run or Step and nowhere else. From then on Run, Step and Close on another thread
// return errWrongThread, until Untie has returned true.
func (s internals) Tie(x tied) {
	s.touch()
	if !s.inside {
		s.thread = thread.ID() // a set-up function is called before Run
	}
	if !slices.Contains(s.tied, x) {
		s.tied = append(s.tied, x)
	}
}

// Crash returns Config.Crash. If it is set, a package that runs other actions within turns of its own does not recover
// their panics. Any goroutine.
func (s internals) Crash() bool { return s.crash }

// TurnCount returns how many turns and posted functions have ended.
func (s internals) TurnCount() uint64 {
	s.touch()
	return s.ended
}

// Failure returns Task.Err after an action has returned Failed, or an error that says that it gave none.
func (s internals) Failure() error { return s.failure() }

// Rests reports whether no turn delays remote events: the thread sleeps, or is in neither Run nor Step. Any goroutine.
func (s internals) Rests() bool { return s.asleep.Load() || s.at.Load() == 0 }

// AtPassEnd calls f once, at the end of the present pass: before the thread polls, sleeps, or leaves Run or Step.
func (s internals) AtPassEnd(f func()) { s.passEnds = append(s.passEnds, f) }

// Progress notes something that a shutdown waits for and that is not a turn of a task: see Policy.Inactivity.
func (s internals) Progress() { s.noteProgress() }

// EndsLast reports whether t ends last of all: see InstallLast.
func (s internals) EndsLast(t *Task) bool { return t.flags&last != 0 }

// Place returns the number of t among the Tasks of its scheduler, from 1; 0 beyond the first four million.
func (s internals) Place(t *Task) uint32 { return s.slab.place(t) }

// Kind returns the name of the kind of t: the service that its action belongs to, the name of a function, or a type.
func (s internals) Kind(t *Task) string {
	if x, ok := t.action.(facts.Served); ok && t.Demon() {
		return "demon of " + x.Service()
	} else if ok {
		return x.Service()
	}
	of := reflect.TypeOf(t.action)
	if of.Kind() == reflect.Func {
		return Name(t.action)
	}
	return of.String()
}

// Waiting reports whether t waits: it is not in its turn, not ready, and nothing that it has offloaded runs.
func (s internals) Waiting(t *Task) bool { return t.state == waiting }

// EachTask calls visit for the tasks and demons from a place on, until visit returns false. It returns where to go on, 0 at the
// end.
func (s internals) EachTask(from uint32, visit func(t *Task) bool) (next uint32) {
	place := max(from, 1)
	for int(place-1) < len(s.slab.chunks)*chunk {
		t := &s.slab.chunks[(place-1)/chunk][(place-1)%chunk]
		place++
		if t.state != free && t.state != leaving && !visit(t) {
			return place
		}
	}
	return 0
}

// Child returns the action that a forwards to as [Child] does; nil if there is none.
func (s internals) Child(a Action) Action {
	if parent, ok := a.(interface{ child() Action }); ok {
		return parent.child()
	}
	return nil
}

// Descriptor returns the descriptor of the connection that t serves, -1 if there is none.
func (s internals) Descriptor(t *Task) int {
	if x, ok := t.action.(facts.Connected); ok {
		return x.Descriptor()
	}
	return -1
}

// EachLocal calls visit for the values of all Locals.
func (s internals) EachLocal(visit func(v any)) {
	for _, v := range s.made {
		visit(v)
	}
}

// Idler returns the Idler as the strategy has wrapped it.
func (s internals) Idler() facts.Idler { return s.idler.Load().Idler }

// NewParker returns an Idler that only sleeps.
func (s internals) NewParker() facts.Idler { return newParker() }

// observer has functions of package inspect, and one of package sim. Each may be nil.
type observer struct {
	// panicked is called for a panic that fails no task. The text of what has nothing that clients have chosen.
	panicked func(what string, stack []byte)
	// resumed is called in a coroutine after each switch to it, for the labels that its goroutine has in profiles.
	resumed func()
	// arrived is called before a shutdown request is put into the inbox, and with nil after anything has been put there: on
	// the goroutine that does so.
	arrived func(o shutdown.Order)
}

// Observe sets what Panicked and Resumed call.
func (s internals) Observe(panicked func(what string, stack []byte), resumed func()) {
	s.observer.panicked, s.observer.resumed = panicked, resumed
}

// ObserveInbox sets what is called when something comes into the inbox. It is called in a set-up function, before the others.
func (s internals) ObserveInbox(arrived func(o shutdown.Order)) { s.observer.arrived = arrived }

func (s *Scheduler) arrives(o shutdown.Order) {
	if f := s.observer.arrived; f != nil {
		f(o)
	}
}

// Panicked calls what Observe has set.
func (s internals) Panicked(what string, stack []byte) {
	if f := s.observer.panicked; f != nil {
		f(what, stack)
	}
}

// Resumed calls what Observe has set.
func (s internals) Resumed() {
	if f := s.observer.resumed; f != nil {
		f()
	}
}

// Concluded returns how many shutdowns have been carried out. For simulations.
func (s internals) Concluded() uint { return s.concluded }

// counts are numbers that a Trace does not see. Only the scheduler's thread touches them.
type counts struct {
	passes, posts, timers, remoteEvents uint64
	offloads, returned                  uint64 // functions given to an Executor, and how many of them have returned
	ended                               uint64 // tasks that have finished or were dropped
}

// readyCounted bounds the tasks that are counted one by one.
const readyCounted = 10_000

// Counts calls add for what the scheduler and its Locals have counted, and for the length of the ready queue.
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
	for n := t.timers; n != nil; n = n.Of.next {
		if due := max(0, time.Duration(n.When())-s.now); d.Timers == 0 || due < d.Due {
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
