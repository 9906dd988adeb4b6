package act

import (
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/shutdown"
)

// Action is a piece of work that is done in turns. Act takes one turn: it does what it can do at once, must not block,
// and returns a [Directive].
//
// Actions call actions as functions call functions. A parent returns every Directive of its child except Done:
//
//	if d := child.Act(t); d != act.Done {
//		return d
//	}
//
// After Done or Failed the scheduler does not call the action again. An action that is meant to be a child returns the
// same final Directive, without effect, when it is called again, so that a parent may call all its children every turn.
//
// An Action that is an io.Closer is closed on the scheduler's thread when its task leaves the scheduler, whether it has
// finished or was dropped.
type Action interface {
	// Act takes one turn of t and returns what comes next. It is called on the scheduler's thread, and must not block.
	Act(t *Task) Directive
}

// Func makes an [Action] of a function, as http.HandlerFunc makes a Handler of one. Each turn is a call.
type Func func(t *Task) Directive

// Act calls f. It panics if f is nil.
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

// Directive is the result of a turn: it tells the scheduler when to call the action next. The zero Directive is
// invalid.
type Directive uint8

// An action that returns the zero Directive has a bug: its task fails with a Panic.
const (
	_      Directive = iota
	Yield            // not finished; it can go on at once
	Wait             // not finished; it goes on when a Waker of this turn is used, a Timer fires, or shutdown begins
	Async            // not finished; a function given to Task.Offload goes on with it
	Done             // finished with success
	Failed           // finished with an error: return t.Fail(err), which sets Task.Err and returns Failed
)

// String returns the name of the constant, such as "Yield".
func (d Directive) String() string {
	if d < Yield || d > Failed {
		return fmt.Sprintf("Directive(%d)", uint8(d))
	}
	return [...]string{Yield: "Yield", Wait: "Wait", Async: "Async", Done: "Done", Failed: "Failed"}[d]
}

// Finished reports whether d is final: Done or Failed. The action that has returned it gets no further turn.
func (d Directive) Finished() bool { return d >= Done }

// Stopper is an Action that is told to shut down. Stop is called on the scheduler's thread, between turns, once for
// each shutdown request that makes the policy stricter (see [Scheduler.Shutdown]). It must not block. After it, a
// waiting task gets one turn, so an action may call [Task.Order] there instead of implementing Stop. An action that
// does neither goes on as before. A parent forwards Stop to its children, as [Child] does.
type Stopper interface {
	// Stop tells the action, a part of the task t, of the shutdown request o. It must not block.
	Stop(t *Task, o shutdown.Order)
}

// Demon is a background action that does not end by itself, such as one that accepts connections. After Yield it has
// its next turn in the next pass, after Wait when it is woken. It ends as soon as it can after Stop. See
// [Scheduler.Install].
type Demon interface {
	Action
	Stopper
}
