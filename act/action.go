package act

import (
	"fmt"

	"github.com/daimon-go/daimon/shutdown"
)

// Action is a piece of work that is done in turns. Act takes one turn: it does what it can do at
// once, must not block, and says with its Directive how matters stand.
//
// Actions call actions as functions call functions. A parent passes on any verdict but Done:
//
//	if d := child.Act(t); d != act.Done {
//		return d
//	}
//
// The scheduler never enters an action again that has answered Done or Failed. An action meant to be
// somebody's child answers a final verdict again, without effect, when it is called again, so that a
// parent may call all its children every turn.
//
// An Action that is an io.Closer is closed when its task leaves the scheduler, however it leaves.
type Action interface {
	Act(t *Task) Directive
}

// Func is an Action made of a function, as http.HandlerFunc is a Handler made of one.
type Func func(t *Task) Directive

// Act calls f.
func (f Func) Act(t *Task) Directive { return f(t) }

// Directive is the verdict of a turn: what the scheduler is to do with the action next.
type Directive uint8

// The zero Directive is a bug of the action that returned it: the scheduler panics in its name.
const (
	_      Directive = iota
	Yield            // not finished; I could go on at once
	Wait             // not finished; somebody holds my Waker
	Async            // not finished; t.Offload has taken my work off this thread
	Done             // finished, as promised
	Failed           // finished, not as promised: see Task.Err
)

func (d Directive) String() string {
	switch d {
	case Yield:
		return "Yield"
	case Wait:
		return "Wait"
	case Async:
		return "Async"
	case Done:
		return "Done"
	case Failed:
		return "Failed"
	}
	return fmt.Sprintf("Directive(%d)", uint8(d))
}

// Finished tells whether d is a final verdict.
func (d Directive) Finished() bool { return d >= Done }

// Stopper is an Action that wants to be told of orders. Stop is called on the scheduler's thread,
// between turns, once for each order that makes the terms stricter; it must not block. Afterwards a
// waiting task is ready once, so the action may also just look at Task.Order in its next turn. An
// action that is no Stopper goes on as if nothing had been said. Parents pass Stop on to their
// children.
type Stopper interface {
	Stop(t *Task, o shutdown.Order)
}

// Demon is an action without an end of its own: it gets one turn a pass while it answers Yield, and
// one after each wake-up when it answers Wait. Having no end of its own it has to take orders, hence
// the Stopper: a demon that is told ends as soon as it can.
type Demon interface {
	Action
	Stopper
}
