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
	// Policy returns the terms. They are read once, when the order is given; an action may read them as well.
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
//
// An end has up to three phases, each with bounds of its own. Time bounds all of them together. A phase is left out if its field
// is 0:
//
//	given ── Announce ──▶ in force ── Spread ──▶ ── Turns, Inactivity ──▶ the end, at the latest at Time
//	         all goes on         idle connections leave   work is finished
type Policy struct {
	Kind Kind
	// Turns bounds the further turns of each task, from the end of the window of Spread on; 0 is no bound. It does not end a task
	// that only waits; Time does. More than math.MaxUint32 means math.MaxUint32.
	Turns int
	// Time bounds the end as a whole, from the moment the order is obeyed, Announce included; 0: no bound.
	Time time.Duration
	// Announce is how long the order is only announced before it is in force. Meanwhile all goes on, and the order can be
	// withdrawn. A server that a load balancer asks whether it is ready says no. It takes at most half of Time.
	Announce time.Duration
	// Spread is the time in which idle connections end when the order is in force. Their moments are spread evenly over its second
	// half, so that clients do not come back all at once. A connection that gets a request before its moment ends with the answer,
	// which says so. It takes at most half of what Announce has left of Time.
	Spread time.Duration
	// Inactivity ends the wait early if nothing has happened for so long on any scheduler: no task has had a turn, no process a
	// message, and no closing connection has gone. 0: no such bound. It counts from the end of the window of Spread on, in which
	// idle connections wait for their moment. What is to end last of all does not count.
	Inactivity time.Duration
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

// Resolved returns p with the defaults of the zero Policy filled in, and with phases that fit into Time. It panics on a
// negative bound and on an unknown Kind.
func (p Policy) Resolved() Policy {
	if p.Turns < 0 || min(p.Time, p.Announce, p.Spread, p.Inactivity) < 0 { // not %v of p: String resolves
		panic(fmt.Sprintf("shutdown: a Policy with a negative bound: %d turns, %v, announced for %v, spread over %v, inactive for %v",
			p.Turns, p.Time, p.Announce, p.Spread, p.Inactivity))
	}
	if p.Kind > Suspending {
		panic(fmt.Sprintf("shutdown: a Policy with no such Kind: %d", p.Kind))
	}
	if p == (Policy{}) {
		return Policy{Time: Grace, Drop: true}
	}
	if p.Kind == Bounded && p.Turns == 0 && p.Time == 0 && p.Inactivity == 0 { // nothing bounds it
		p.Kind = Endless
	}
	if p.Kind == Bounded && p.Time > 0 {
		p.Announce = min(p.Announce, p.Time/2)
		p.Spread = min(p.Spread, (p.Time-p.Announce)/2)
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
	if p.Inactivity > 0 && p.Kind < Halting {
		text += fmt.Sprintf(", %v without activity", p.Inactivity)
	}
	if p.Spread > 0 && p.Kind < Halting {
		text += fmt.Sprintf(", idle connections over %v", p.Spread)
	}
	if p.Announce > 0 {
		text = fmt.Sprintf("announce for %v, %s", p.Announce, text)
	}
	if p.Drop {
		text += ", then drop"
	}
	return text
}
