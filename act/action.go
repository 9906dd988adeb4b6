package act

import (
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/shutdown"
)

// Action is a piece of work that is done in turns. Act takes one turn: it does what it can do at once, must not block, and
// returns its verdict, a [Directive].
//
// Actions call actions as functions call functions. A parent returns any verdict of its child but Done:
//
//	if d := child.Act(t); d != act.Done {
//		return d
//	}
//
// The scheduler does not call an action again that has returned Done or Failed. An action that is meant to be a child
// returns a final verdict again, without effect, when it is called again, so that a parent may call all its children every
// turn.
//
// An Action that is an io.Closer is closed when its task leaves the scheduler, whether it has finished or was dropped.
type Action interface {
	Act(t *Task) Directive
}

// Func is a function as an Action, as http.HandlerFunc is a function as a Handler.
type Func func(t *Task) Directive

// Act calls f.
func (f Func) Act(t *Task) Directive {
	if f == nil {
		panic("act: a turn of a nil Func")
	}
	return f(t)
}

// mustExist panics if one of the actions is nil.
func mustExist(caller string, actions ...Action) {
	if slices.Contains(actions, nil) {
		panic(caller + " of a nil action")
	}
}

// Directive is the verdict of a turn: it tells the scheduler when to call the action next. The zero Directive is
// invalid.
type Directive uint8

// An action that returns the zero Directive has a bug: its task fails with a Panic.
const (
	_      Directive = iota
	Yield            // not finished; it can go on at once
	Wait             // not finished; it goes on when a Waker of this turn is used, a Timer fires, or an order is given
	Async            // not finished; a function given to Task.Offload goes on with it
	Done             // finished, as promised
	Failed           // finished, not as promised: see Task.Err
)

func (d Directive) String() string {
	if d < Yield || d > Failed {
		return fmt.Sprintf("Directive(%d)", uint8(d))
	}
	return [...]string{Yield: "Yield", Wait: "Wait", Async: "Async", Done: "Done", Failed: "Failed"}[d]
}

// Finished reports whether d is a final verdict, Done or Failed.
func (d Directive) Finished() bool { return d >= Done }

// Stopper is an Action that is told of orders to end. Stop is called on the scheduler's thread, between turns, once for
// each order that makes the terms stricter (see [Scheduler.Shutdown]); it must not block. After it, a task that waits
// gets one turn, so an action may also look at Task.Order there. An action that is not a Stopper and does not look goes
// on as before. A parent forwards Stop to its children.
type Stopper interface {
	Stop(t *Task, o shutdown.Order)
}

// Demon is an action without an end of its own, such as one that accepts connections. It gets one turn a pass after Yield,
// and one after each wake-up after Wait. It ends as soon as it can after Stop. See [Scheduler.Install].
type Demon interface {
	Action
	Stopper
}
