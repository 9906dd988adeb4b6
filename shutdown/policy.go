package shutdown

import (
	"fmt"
	"time"
)

// Grace is how long work may go on under the zero Policy.
const Grace = 30 * time.Second

// Order is the reason for an end. Every action receives the value itself, so an application's own type can carry more than
// the terms.
type Order interface {
	// Policy returns the terms. A scheduler reads them once, when it obeys the order; an action may read them as well.
	Policy() Policy
}

// Now is an order that has only terms.
type Now struct{ Terms Policy }

// Policy returns the terms.
func (n Now) Policy() Policy { return n.Terms }

// Kind is how much work is still done after an order.
type Kind uint8

const (
	// Bounded lets work go on within Policy.Turns and Policy.Time.
	Bounded Kind = iota
	// Endless lets work go on until it ends by itself.
	Endless
	// Halting takes no further turn: the bound is zero.
	Halting
	// Suspending takes no further turn and tells no action, so that a later Run goes on where this one has ended.
	Suspending
)

func (k Kind) String() string {
	if k > Suspending {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return [...]string{Bounded: "bounded", Endless: "endless", Halting: "halt", Suspending: "suspend"}[k]
}

// Policy is the terms of an end. The zero Policy means {Time: Grace, Drop: true}: drain for 30 s, then drop. A Policy with
// any field set is taken as it is, so Policy{Turns: 5} has no bound in time and drops nothing.
type Policy struct {
	Kind Kind
	// Turns bounds the further turns of each task; 0 is no bound. It does not end a task that only waits; Time does. More
	// than math.MaxUint32 means math.MaxUint32.
	Turns int
	// Time bounds the further work as a whole, from the moment the order is obeyed; 0: no bound.
	Time time.Duration
	// Drop closes and removes the actions that are left at the end. Without it a later Run goes on with them.
	Drop bool
}

// Policies with names. They must not be changed.
var (
	// Unbounded tells all actions and waits until they have finished.
	Unbounded = Policy{Kind: Endless}
	// Halt stops at once and keeps what is left.
	Halt = Policy{Kind: Halting}
	// Suspend stops at once, tells no action, and keeps everything as it is.
	Suspend = Policy{Kind: Suspending}
)

// Resolved returns p with the defaults of the zero Policy filled in. It panics on a negative bound and on an unknown Kind.
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
