package coro

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// New makes an action of body: it is Done when body returns nil, and Failed when it returns an error. The
// coroutine is made in its first turn.
//
// On an order it goes on, as does what it waits for; an action given to Do is told. See Co.Order and
// Co.UntilOrder.
func New(body func(*Co) error) act.Action {
	if body == nil {
		panic("coro: New without a body")
	}
	return (*routine)(&Co{program: &program{body, body}})
}

// program is what the coroutines of one service have in common.
type program struct {
	body func(*Co) error
	of   any // the function to be named
}

// routine is a Co as the action that its task sees.
type routine Co

// Act lets the body go on.
func (r *routine) Act(t *act.Task) act.Directive {
	co := (*Co)(r)
	if !co.ended() {
		if co.task == nil {
			co.begin(t)
		}
		co.slack = callsATurn
		if d := co.turn(); !co.ended() {
			return d
		}
	}
	if co.panicked != nil { // again: the first time it has come through resume
		co.panicked.Raise()
	}
	if co.err != nil {
		return t.Fail(co.err)
	}
	return act.Done
}

// turn lets the body go on until it answers. An action that it does takes its turns here, on the scheduler's stack: to
// switch to the body and back only to hear that it waits costs more than most of them do.
func (co *Co) turn() act.Directive {
	for {
		if co.child != nil {
			if d, over := co.attend(); !over {
				return d
			}
		}
		if d := co.crew.resume(co); d != do || co.ended() {
			return d
		}
	}
}

func (co *Co) begin(t *act.Task) {
	co.task, co.crew = t, crews.Get(t.Scheduler())
	co.crew.engage(co)
}

func (co *Co) ended() bool { return co.task != nil && co.worker == nil || co.stopped }

// Stop passes an order on to the action that the body waits for.
func (r *routine) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := r.child.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

// Close stops the body if it has not ended. An error that it then returns, other than ErrStopped, is the
// result.
func (r *routine) Close() error {
	co := (*Co)(r)
	switch {
	case co.ended():
		return nil
	case co.task == nil:
		co.stopped, co.err = true, ErrStopped
		return nil
	case co.running:
		panic("coro: a body closed its own coroutine")
	case co.crew.closed:
		return errElsewhere
	}
	co.stop()
	switch {
	case co.unwound && co.panicked.Value == errGoexit:
		co.panicked, co.err = nil, ErrStopped
	case co.panicked != nil:
		co.panicked.Raise()
	}
	if errors.Is(co.err, ErrStopped) {
		return nil
	}
	return co.err
}

// errElsewhere can happen only to who is closed by a parent that is no act.Abandoner.
var errElsewhere = errors.New("coro: a coroutine cannot be stopped by the goroutine of an abandoned function, and is left behind")

// Abandon stops the body, and leaves the action that it waits for to the function which that has offloaded.
func (r *routine) Abandon() act.Action {
	rest := act.AbandonAction(r.child)
	r.parted = true
	if err := r.Close(); err != nil {
		r.task.Scheduler().Logger().Warn("closing failed", zap.Error(err))
	}
	return rest
}

// Patience is how long a body may go on after it was stopped before that is logged.
const Patience = 2 * time.Second

// stop has the body end: no call suspends it any more.
func (co *Co) stop() {
	co.stopped = true
	if co.cancel != nil {
		co.cancel(ErrStopped)
	}
	name, log := co.program.String(), co.task.Scheduler().Logger()
	watch := time.AfterFunc(Patience, func() {
		log.Error("a stopped coroutine does not end, and holds up its thread", zap.String("task", name))
	})
	defer watch.Stop()
	defer func() {
		if v := recover(); v != nil && act.Recovered(v) != co.panicked {
			panic(v)
		}
	}()
	co.crew.resume(co)
}

// String names the function of the body.
func (r *routine) String() string { return r.program.String() }

func (p *program) String() string { return act.FuncName(p.of) }
