package merge

import (
	"math"
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// Terms are policies, merged at the times when they came into force. Bounds in time are points in time, so a second
// shutdown request can only bring them nearer. The zero Terms mean that there is none.
type Terms struct {
	Kind       shutdown.Kind // the strictest one
	Turns      uint32        // further turns of each task; 0: no such bound
	Until      time.Duration // on the clock that With was given readings of; 0: no such bound
	Leave      time.Duration // when the last idle connection is to end
	Inactivity time.Duration // 0: no such bound
	Drop       bool          // tasks are dropped at the end
	Given      bool          // there was a shutdown request
}

// strictness ranks kinds: Suspend > Halt > Bounded > Unbounded.
var strictness = [...]int{shutdown.Bounded: 1, shutdown.Unbounded: 0, shutdown.Halt: 2, shutdown.Suspend: 3}

// With returns the strictest of t and p, field by field, where p comes into force at now, and whether anything became
// stricter: fewer turns beat more, less time beats more, a bound beats none, no Spread beats one, Drop wins. p.Turns counts
// from now on, t.Turns from when it was given: a caller that has counted turns since then compares for each task. p.Announce
// is the business of the caller.
func (t Terms) With(p shutdown.Policy, now time.Duration) (merged Terms, stricter bool) {
	p = p.Resolved()
	merged = t
	if !t.Given || strictness[p.Kind] > strictness[t.Kind] {
		merged.Kind = p.Kind
	}
	if turns := uint32(min(uint64(p.Turns), math.MaxUint32)); turns > 0 && (t.Turns == 0 || turns < t.Turns) {
		merged.Turns = turns
	}
	if until := now + min(p.Time, math.MaxInt64-now); p.Time > 0 && (t.Until == 0 || until < t.Until) {
		merged.Until = until
	}
	if leave := now + min(p.Spread, math.MaxInt64-now); !t.Given || leave < t.Leave {
		merged.Leave = leave
	}
	if p.Inactivity > 0 && (t.Inactivity == 0 || p.Inactivity < t.Inactivity) {
		merged.Inactivity = p.Inactivity
	}
	merged.Drop = t.Drop || p.Drop
	merged.Given = true
	return merged, merged != t
}
