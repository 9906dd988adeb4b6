package shutdown

import (
	"fmt"
	"time"
)

// grace is how long work may go on by the zero Policy.
const grace = 30 * time.Second

// Order is a shutdown request: pass it to act.Group.Shutdown or act.Scheduler.Shutdown. Every action receives the value
// itself, so an application's own type can carry more than a Policy, such as a reason. A [Policy] is the simplest
// Order.
type Order interface {
	// Policy returns how to shut down. Shutdown reads it once, when the request is made; actions may read it as well.
	Policy() Policy
}

// Kind says how much work is still done after a shutdown request. The zero Kind is Bounded.
type Kind uint8

const (
	// Bounded tells all actions and lets work go on within the bounds Turns, Time and Inactivity of the Policy.
	Bounded Kind = iota
	// Unbounded tells all actions and lets work go on, without a bound, until it ends by itself.
	Unbounded
	// Halt tells all actions and ends Run at once: no task has a further turn.
	Halt
	// Suspend takes no further turn and tells no action, so that a later Run goes on where this one ended.
	Suspend
)

// Policy says how to shut down. The zero Policy means {Time: 30 * time.Second, Drop: true}: drain, then drop. If any
// field is set, the others have no defaults, so Policy{Turns: 5} has no bound in time and drops nothing.
//
// A shutdown has up to three phases, each with bounds of its own. Time bounds all of them together. A phase is left out
// if its field is 0:
//
//	given ── Announce ──▶ in force ── Spread ──▶ ── Turns, Inactivity ──▶ the end, at the latest at Time
//	         all goes on         idle connections leave   work is finished
type Policy struct {
	// Kind says how much work is still done after the request. The zero Kind is Bounded, by the other fields.
	Kind Kind
	// Turns bounds the further turns of each task, counted from the end of Spread; 0 means no bound. It does not end a
	// task that only waits; Time does. More than math.MaxUint32 means math.MaxUint32.
	Turns int
	// Time bounds the whole shutdown, from the moment the request is obeyed, including Announce; 0 means no bound.
	Time time.Duration
	// Announce is how long the shutdown is only announced before it is in force ("lame duck"). Meanwhile work goes on
	// as before, act.Group.Withdraw can take the request back, and readiness checks of a load balancer are answered no.
	// It is at most half of Time.
	Announce time.Duration
	// Spread is the window in which idle connections are closed when the shutdown is in force (a staggered drain). They
	// are closed evenly over its second half, so that clients do not reconnect all at once. A connection that gets a
	// request earlier is closed after the answer, which says so. Spread is at most half of the Time that Announce
	// leaves.
	Spread time.Duration
	// Inactivity ends the shutdown early if nothing has happened for so long on any scheduler: no task has had a turn,
	// no actor (package process) a message, and no closing connection has ended. 0 means no such bound. It counts from
	// the end of Spread. Services that end last of all do not count as activity.
	Inactivity time.Duration
	// Drop closes and removes the actions that are left at the end. Without Drop they stay, and a later Run goes on
	// with them.
	Drop bool
}

// Policy returns p, so that a Policy is an [Order]: s.Shutdown(shutdown.Policy{}) drains for 30 s.
func (p Policy) Policy() Policy { return p }

// Resolved returns the policy that is obeyed: the defaults for the zero Policy, Announce and Spread shortened to fit
// into Time, and Unbounded for a Policy without any bound. Schedulers call it; use it to print or test a policy. It
// panics on a negative bound and on an unknown Kind.
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

// String describes the policy that is obeyed (see [Policy.Resolved]), such as "drain, 30s, then drop".
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
