package shutdown

import (
	"fmt"
	"time"
)

// grace is how long work may go on under the zero Policy.
const grace = 30 * time.Second

// Order is the reason for an end. Every action receives the value itself, so an application's own type can carry more than
// the terms. A [Policy] is an Order that has only terms.
type Order interface {
	// Policy returns the terms. They are read once, when the order is given; an action may read them as well.
	Policy() Policy
}

// Kind is how much work is still done after an order.
type Kind uint8

const (
	// Bounded lets work go on within Policy.Turns and Policy.Time.
	Bounded Kind = iota
	// Unbounded tells all actions and lets work go on until it ends by itself.
	Unbounded
	// Halt tells all actions and takes no further turn: the bound is zero.
	Halt
	// Suspend takes no further turn and tells no action, so that a later Run goes on where this one has ended.
	Suspend
)

// Policy is the terms of an end. The zero Policy means {Time: 30 * time.Second, Drop: true}: drain, then drop. A Policy with
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

// Policy returns p: s.Shutdown(shutdown.Policy{}) drains for 30 s.
func (p Policy) Policy() Policy { return p }

// Resolved returns p with the defaults of the zero Policy filled in, and with phases that fit into Time. It panics on a
// negative bound and on an unknown Kind.
func (p Policy) Resolved() Policy {
	if p.Turns < 0 || min(p.Time, p.Announce, p.Spread, p.Inactivity) < 0 { // not %v of p: String resolves
		panic(fmt.Sprintf("shutdown: a Policy with a negative bound: %d turns, %v, announced for %v, spread over %v, inactive for %v",
			p.Turns, p.Time, p.Announce, p.Spread, p.Inactivity))
	}
	if p.Kind > Suspend {
		panic(fmt.Sprintf("shutdown: a Policy with no such Kind: %d", p.Kind))
	}
	if p == (Policy{}) {
		return Policy{Time: grace, Drop: true}
	}
	if p.Kind == Bounded && p.Turns == 0 && p.Time == 0 && p.Inactivity == 0 { // nothing bounds it
		p.Kind = Unbounded
	}
	if p.Kind == Bounded && p.Time > 0 {
		p.Announce = min(p.Announce, p.Time/2)
		p.Spread = min(p.Spread, (p.Time-p.Announce)/2)
	}
	return p
}

func (p Policy) String() string {
	p = p.Resolved()
	text := [...]string{Bounded: "drain", Unbounded: "endless", Halt: "halt", Suspend: "suspend"}[p.Kind]
	if p.Kind == Bounded {
		if p.Turns > 0 {
			text += fmt.Sprintf(", %d turns a task", p.Turns)
		}
		if p.Time > 0 {
			text += fmt.Sprintf(", %v", p.Time)
		}
	}
	if p.Inactivity > 0 && p.Kind < Halt {
		text += fmt.Sprintf(", %v without activity", p.Inactivity)
	}
	if p.Spread > 0 && p.Kind < Halt {
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
