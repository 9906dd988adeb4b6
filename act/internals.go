package act

import (
	"slices"

	"github.com/daimon-go/daimon/internal/thread"
)

// Internals is for the other packages of Daimon. It is not part of the API: its methods may change with every release.
func (s *Scheduler) Internals() *internals { return (*internals)(s) }

// internals is a Scheduler with methods that only packages of this module call. Its methods are called on the scheduler's thread,
// except where others are named.
type internals Scheduler

func (i *internals) of() *Scheduler { return (*Scheduler)(i) }

// Tie registers x, which lives on the thread of Run or Step and nowhere else. From then on Run, Step and Close on another thread
// return errWrongThread, until Untie has returned true.
func (i *internals) Tie(x tied) {
	s := i.of()
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
func (i *internals) Crash() bool { return i.crash }

// TurnCount returns how many turns and posted functions have ended.
func (i *internals) TurnCount() uint64 {
	i.of().touch()
	return i.ended
}

// Failure returns Task.Err after an action has returned Failed. It is never nil: if the action gave no error, Failure
// returns one that says so. A [Child] does the same.
func (i *internals) Failure() error { return i.of().failure() }

// Rests reports whether the thread sleeps, or is in neither Run nor Step: then no turn delays remote events. Any
// goroutine.
func (i *internals) Rests() bool { return i.asleep.Load() || i.at.Load() == 0 }

// AtPassEnd calls f once, at the end of the present pass: before the thread polls the operating system, sleeps, or
// leaves Run or Step.
func (i *internals) AtPassEnd(f func()) { i.passEnds = append(i.passEnds, f) }

// Progress notes something that a shutdown waits for and that is not a turn of a task: see Inactivity of
// shutdown.Policy.
func (i *internals) Progress() { i.of().noteProgress() }

// EndsLast reports whether t ends last of all: see InstallLast.
func (i *internals) EndsLast(t *Task) bool { return t.flags&last != 0 }

// Place returns the number of t among the Tasks of its scheduler, from 1; 0 beyond the first four million. A Task that is used
// again keeps it.
func (i *internals) Place(t *Task) uint32 { return i.slab.place(t) }

// Kind returns the name of the kind of t: the service that its action belongs to, the name of a function, or a type.
func (i *internals) Kind(t *Task) string { return t.kind() }

// Waiting reports whether t waits: it is not in its turn, not ready, and nothing that it has offloaded runs.
func (i *internals) Waiting(t *Task) bool { return t.state == waiting }

// EachTask calls visit for the tasks and demons in the order of their places, from the place from on, until visit returns false.
// It returns where to go on, 0 at the end.
func (i *internals) EachTask(from uint32, visit func(t *Task) bool) (next uint32) {
	place := max(from, 1)
	for int(place-1) < len(i.slab.chunks)*chunk {
		t := &i.slab.chunks[(place-1)/chunk][(place-1)%chunk]
		place++
		if t.state != free && t.state != leaving && !visit(t) {
			return place
		}
	}
	return 0
}

// Child returns the action that a forwards to as [Child] does; nil if there is none.
func (i *internals) Child(a Action) Action {
	if parent, ok := a.(interface{ child() Action }); ok {
		return parent.child()
	}
	return nil
}

// Descriptor returns the descriptor of the connection that t serves, -1 if there is none.
func (i *internals) Descriptor(t *Task) int {
	if x, ok := t.action.(connected); ok {
		return x.Descriptor()
	}
	return -1
}

// Status returns what the scheduler knows of t.
func (i *internals) Status(t *Task) status { return i.of().status(t) }

// EachLocal calls visit for the values of all Locals.
func (i *internals) EachLocal(visit func(v any)) {
	for _, v := range i.made {
		visit(v)
	}
}

// LastReady returns the last task of the ready queue, nil if none is ready.
func (i *internals) LastReady() *Task {
	if i.ready.head == nil {
		return nil
	}
	return i.ready.tail
}

// Idler returns the Idler as the strategy has wrapped it.
func (i *internals) Idler() Idler { return i.idler.Load().Idler }

// NewParker returns an Idler that only sleeps.
func (i *internals) NewParker() Idler { return newParker() }

// observer has functions of package inspect, nil if it does not observe.
type observer struct {
	panicked func(what string, stack []byte)
	resumed  func()
}

// Observe sets what Panicked and Resumed call.
func (i *internals) Observe(panicked func(what string, stack []byte), resumed func()) {
	i.observer = observer{panicked, resumed}
}

// Panicked notes a panic that fails no task, with its stack. The text of what must not contain anything that clients
// have chosen.
func (i *internals) Panicked(what string, stack []byte) {
	if f := i.observer.panicked; f != nil {
		f(what, stack)
	}
}

// Resumed is called in a coroutine after each switch to it, for the labels that its goroutine has in profiles (see
// runtime/pprof).
func (i *internals) Resumed() {
	if f := i.observer.resumed; f != nil {
		f()
	}
}

// Concluded returns how many shutdowns have been carried out. For simulations.
func (i *internals) Concluded() uint { return i.concluded }
