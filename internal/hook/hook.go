// Package hook has what Daimon's own packages say to package act and to package inspect of their actions and Locals, and users do not.
package hook

import "github.com/daimon-go/daimon/shutdown"

// Accounter is an act.Local's value that calls KeepRunning for something of its own. Account counts and names that in c, whose
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

// Child returns the action that a, an act.Action, forwards to as act.Child does; nil if there is none. Package act sets it.
var Child func(a any) any
