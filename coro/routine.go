package coro

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
	"github.com/daimon-go/daimon/shutdown"
)

// New returns an action that runs f, the body, as a coroutine. It is Done when f returns nil, and fails when f returns
// an error or panics. The coroutine is made in the action's first turn. For connections use [Serve].
//
// During shutdown the body goes on. An action that it runs with Do is told of the shutdown. See [Co.Order] and
// [Co.UntilOrder].
func New(f func(*Co) error) act.Action {
	if f == nil {
		panic("coro: New without a function")
	}
	return (*routine)(&Co{body: &body{f, f}})
}

// body is the function of a coroutine. The coroutines of one service share it.
type body struct {
	run   func(*Co) error
	given any // the user's function, which names the coroutine
}

// routine is a Co as the scheduler sees it: an action.
type routine Co

// Act gives the body a turn.
func (r *routine) Act(t *act.Task) act.Directive {
	co := (*Co)(r)
	if !co.ended() {
		switch co.task {
		case nil:
			co.begin(t)
		case t:
		default: // the end of t stops the body, of which the other task is to hear
			co.task.Waker().Wake()
			panic("coro: a coroutine was spawned twice: a further task needs one of its own")
		}
		co.calls = callsPerTurn
		if d := co.turn(); !co.ended() {
			return d
		}
	}
	if co.panicked != nil { // called again: the first time the panic came through resume
		co.panicked.Raise()
	}
	if co.err != nil {
		return t.Fail(co.err)
	}
	return act.Done
}

// turn runs the body until it yields. The action of Do has its turns here, on the scheduler's stack: to switch to the
// body and back only to learn that the action waits would cost more than most actions do.
func (co *Co) turn() act.Directive {
	for {
		if co.child != nil {
			if d, over := co.runChild(); !over {
				return d
			}
		}
		if d := co.pool.resume(co); d != do || co.ended() {
			return d
		}
	}
}

func (co *Co) begin(t *act.Task) {
	co.task, co.pool = t, pools.Get(t.Scheduler())
	co.pool.start(co)
}

func (co *Co) ended() bool { return co.task != nil && co.worker == nil || co.stopped }

// If the body waits for several things with Unblock, only the first is described.
func (r *routine) Describe(d *act.Description) {
	if r.child != nil {
		d.Of(r.child)
	} else if r.outcome != nil && !d.Of(r.outcome) {
		d.WaitsFor(r.outcome.Error())
	}
}

// Stop forwards a shutdown request to the action of Do.
func (r *routine) Stop(t *act.Task, o shutdown.Order) {
	r.orders++
	if st, ok := r.child.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

// Close stops the body if it has not ended, and returns its error unless that is ErrStopped.
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
	case co.pool.closed:
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

// errElsewhere is returned if a parent that is not an act.Abandoner closes a coroutine.
var errElsewhere = errors.New("coro: a coroutine cannot be stopped on the goroutine of an abandoned function; its goroutine leaks")

// Abandon stops the body. The action of Do is left to the function that it has offloaded.
func (r *routine) Abandon() act.Action {
	rest := (&act.Child{Action: r.child}).Abandon()
	r.detached = true
	if err := r.Close(); err != nil {
		r.task.Scheduler().Logger().Warn("closing failed", zap.Error(err))
	}
	return rest
}

// patience is how long a stopped body may run before that is logged. Only a test changes it.
var patience = 2 * time.Second

// stop makes the body end: from now on no call suspends it.
func (co *Co) stop() {
	co.stopped = true
	if co.cancel != nil {
		co.cancel(ErrStopped)
	}
	name, log := co.body.String(), co.task.Scheduler().Logger()
	watch := time.AfterFunc(patience, func() {
		log.Error("a stopped coroutine does not end and blocks its thread", zap.String("task", name))
	})
	defer watch.Stop()
	defer func() {
		if v := recover(); v != nil && panics.Recovered(v) != co.panicked {
			panic(v)
		}
	}()
	co.pool.resume(co)
}

// String names the function of the body.
func (r *routine) String() string { return r.body.String() }

func (b *body) String() string { return act.Name(b.given) }
