// Package hook is what Daimon's own packages need of package act, and users do not: the rest of a scheduler's
// interface. Package act sets the functions. s is an *act.Scheduler and t an *act.Task, which this package cannot name,
// since act imports it.
package hook

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/shutdown"
)

// Accounter is an act.Local's value that calls Hold for something of its own. Account counts and names that in c, whose
// Order is in force, and returns how many of the scheduler's holds are for it. It is called at the end of Run, before
// anything is dropped.
type Accounter interface {
	Account(c *shutdown.Cut) (holds int)
}

// Leaver is an act.Local's value that has to do with those of other schedulers. Leave is called at the end of Run, which
// other schedulers may not have reached, and of an order in Step: nothing has a turn here before the next Run or Step, or
// ever, if the scheduler is broken.
type Leaver interface {
	Leave()
}

// Peer is an action that serves a connection. The report of its failure has what Peer returns: the address of the other
// end, or "".
type Peer interface {
	Peer() string
}

// Parent is the action of a task that can go on with another action in place of one that it calls. Replace reports whether
// it calls old; then it calls replacement from the next turn on, and whatever else it had for old is replacement's: orders,
// the end and the name.
type Parent interface {
	Replace(old, replacement any) bool
}

// Tied is something that lives on the thread of Run or Step and nowhere else, such as coroutines.
type Tied interface {
	// Untie ends what can be ended without loss, and reports whether nothing is left that lives on this thread. It is
	// called there, whenever Run, Step or Close is about to return.
	Untie() bool
}

var (
	// Tie registers x. From then on Run, Step and Close of s on another thread return act.ErrWrongThread, until Untie has
	// returned true. It is called on the thread of s.
	Tie func(s any, x Tied)

	// Crashes reports whether Config.Crash is set. A package that runs actions of others in turns of its own does not
	// recover their panics then. Any goroutine.
	Crashes func(s any) bool

	// TurnCount returns how many turns and posted functions of s have ended. It is called on the thread of s.
	TurnCount func(s any) uint64

	// Failure returns act.Task.Err after an action of t has returned Failed, and is never nil: if the action did not say
	// why, it is an error that says so. An act.Child does the same.
	Failure func(t any) error

	// Rests reports whether the thread of s sleeps, or is in neither Run nor Step: then no turn delays what comes from
	// elsewhere. Any goroutine.
	Rests func(s any) bool

	// EachWaiting calls visit for each task and demon of s that waits: it is not in its turn, not ready, and nothing that it
	// has offloaded runs. It is called on the thread of s.
	EachWaiting func(s any, visit func(t any))

	// Child returns the action that a, an act.Action, forwards to as act.Child does; nil if there is none.
	Child func(a any) any

	// AtPassEnd has f called once, at the end of the present pass of s: before the thread looks at the operating system,
	// sleeps, or leaves Run or Step. It is called on the thread of s.
	AtPassEnd func(s any, f func())

	// Progress says that something has happened on s for which an end waits, and which is no turn of a task: see Inactivity of
	// shutdown.Policy. It is called on the thread of s.
	Progress func(s any)

	// EndsLast reports whether t ends last of all: see InstallLast.
	EndsLast func(t any) bool

	// EndWithOthers has t, if it was to end last of all, end with the others. It is called on the thread of the scheduler, and not
	// in a turn of t.
	EndWithOthers func(t any)
)

// Package inspect sets these, and nobody does if it is not linked. A goroutine has the labels of the one that has started it,
// in profiles (see runtime/pprof).
var (
	// Unlabel takes the labels of the calling goroutine away. One calls it that works for more than those that have started it.
	Unlabel func()

	// Panicked notes a panic on the thread of s that fails no task, with its stack. What has panicked is said without what its clients
	// have chosen. It is called by NotePanic.
	Panicked func(s any, what string, stack []byte)

	// Resumed, if it is set, is called by a coroutine of s after each switch to it, for the labels of the present turn.
	Resumed atomic.Pointer[func(s any)]
)

// NotePanic calls Panicked if it is set.
func NotePanic(s any, what string, stack []byte) {
	if Panicked != nil {
		Panicked(s, what, stack)
	}
}
