package act

import (
	"reflect"
	"slices"

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

// Failure returns Task.Err after an action has returned Failed. It is never nil: if the action gave no error, Failure
// returns one that says so. A [Child] does the same.
func (s internals) Failure() error { return s.failure() }

// Rests reports whether the thread sleeps, or is in neither Run nor Step: then no turn delays remote events. Any
// goroutine.
func (s internals) Rests() bool { return s.asleep.Load() || s.at.Load() == 0 }

// AtPassEnd calls f once, at the end of the present pass: before the thread polls the operating system, sleeps, or
// leaves Run or Step.
func (s internals) AtPassEnd(f func()) { s.passEnds = append(s.passEnds, f) }

// Progress notes something that a shutdown waits for and that is not a turn of a task: see Inactivity of
// shutdown.Policy.
func (s internals) Progress() { s.noteProgress() }

// EndsLast reports whether t ends last of all: see InstallLast.
func (s internals) EndsLast(t *Task) bool { return t.flags&last != 0 }

// Place returns the number of t among the Tasks of its scheduler, from 1; 0 beyond the first four million. A Task that is used
// again keeps it.
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
