package shutdown

import (
	"fmt"
	"time"
)

// Grace is how long the zero Policy lets work go on.
const Grace = 30 * time.Second

// Order is the reason for an end. The value itself travels to every action, so that an action can
// ask it more than its terms.
type Order interface {
	// Policy is read once, when the order reaches a scheduler.
	Policy() Policy
}

// Now is the plain order: no reason, only terms.
type Now struct{ Terms Policy }

// Policy returns the terms.
func (n Now) Policy() Policy { return n.Terms }

// Kind says how much work is still done after an order, from everything to nothing.
type Kind uint8

const (
	// Bounded lets work go on within Policy.Turns and Policy.Time.
	Bounded Kind = iota
	// Endless lets work go on until it ends by itself, however long that takes.
	Endless
	// Halting takes no further turn: the bound is zero.
	Halting
	// Suspending takes no further turn and tells nobody, so that a later Run goes on as if nothing
	// had been.
	Suspending
)

func (k Kind) String() string {
	switch k {
	case Bounded:
		return "bounded"
	case Endless:
		return "endless"
	case Halting:
		return "halt"
	case Suspending:
		return "suspend"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Policy is the terms of an end. The zero Policy means {Time: Grace, Drop: true}: drain for thirty
// seconds, then drop. A Policy with any field set is taken as it stands, so Policy{Turns: 5} has no
// bound in time and drops nothing.
type Policy struct {
	Kind Kind
	// Turns bounds the further turns of each task, 0 not at all. It ends no task that only waits:
	// add Time for that. At most math.MaxUint32 are counted.
	Turns int
	// Time bounds the further work as a whole, from the moment the order is obeyed; 0: no bound.
	Time time.Duration
	// Drop releases what is left when the end comes: actions are closed and forgotten. Without it
	// they stay where they are and a later Run goes on with them.
	Drop bool
}

// The named terms. They are values to be used or copied, not to be changed.
var (
	// Unbounded tells everybody and waits for as long as it takes.
	Unbounded = Policy{Kind: Endless}
	// Halt stops at once and keeps what is left.
	Halt = Policy{Kind: Halting}
	// Suspend stops at once, tells nobody, and keeps everything intact.
	Suspend = Policy{Kind: Suspending}
)

// Resolved returns p with the meaning of the zero value filled in. It panics on a negative bound,
// which no arithmetic of a caller should produce silently, and on a Kind that there is not.
func (p Policy) Resolved() Policy {
	if p.Turns < 0 || p.Time < 0 { // not %v of p: String resolves
		panic(fmt.Sprintf("shutdown: a Policy with a negative bound: %d turns, %v", p.Turns, p.Time))
	}
	if p.Kind > Suspending {
		panic(fmt.Sprintf("shutdown: a Policy with no such Kind: %d", p.Kind))
	}
	if p == (Policy{}) {
		return Policy{Time: Grace, Drop: true}
	}
	if p.Kind == Bounded && p.Turns == 0 && p.Time == 0 { // only Drop is set: nothing to bound it
		p.Kind = Endless
	}
	return p
}

func (p Policy) String() string {
	p = p.Resolved()
	text := p.Kind.String()
	if p.Kind == Bounded {
		text = "drain"
		if p.Turns > 0 {
			text += fmt.Sprintf(", %d turns a task", p.Turns)
		}
		if p.Time > 0 {
			text += fmt.Sprintf(", %v", p.Time)
		}
	}
	if p.Drop {
		text += ", then drop"
	}
	return text
}
