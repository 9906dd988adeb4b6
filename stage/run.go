package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/shutdown"
)

// Run claims and works until ctx ends, and then stops on the terms of Config.Shutdown: see Stop, whose error it
// returns. A store that does not answer is logged, and asked again. Run may be called again afterwards.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.begin(e.alone); err != nil {
		return err
	}
	defer e.conclude()
	defer e.stopAfter(ctx)()
	life := e.living()
	for life.Err() == nil { // until the end of a Stop, also one of somebody else
		bell := e.alone.bell
		works, err := e.claim(life)
		e.alone.take(works)
		if err != nil && !errors.Is(err, ErrStopped) && life.Err() == nil {
			e.unanswered(err)
			bell = nil // not before the next poll
		}
		poll := time.NewTimer(e.polling())
		select {
		case <-life.Done():
		case <-bell:
		case <-poll.C:
		}
		poll.Stop()
	}
	return e.finish(life, nil)
}

// stopAfter has the engine stop when ctx has ended, also while it waits for the store. The function that it returns
// waits for that, or calls it off.
func (e *Engine) stopAfter(ctx context.Context) (settle func()) {
	stopped := make(chan struct{})
	off := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = e.Stop(cancelled{ctx, e.cfg.Shutdown})
	})
	return func() {
		if !off() {
			<-stopped
		}
	}
}

// unanswered logs that the store has not answered a claim.
func (e *Engine) unanswered(err error) {
	e.cfg.Logger.Error("nothing can be claimed: the store does not answer", zap.Error(err))
}

// cancelled is the order of a cancelled context.
type cancelled struct {
	ctx   context.Context
	terms shutdown.Policy
}

func (c cancelled) Policy() shutdown.Policy { return c.terms }
func (c cancelled) Error() string {
	return fmt.Sprintf("the context has ended: %v", context.Cause(c.ctx))
}

// Stop ends the work here: nothing more is claimed, the contexts of the processors end with ErrInterrupted, and each
// task goes back to its last static stage, to be claimed by others at once; that is neither an attempt nor a failure.
// Stop returns when all have gone back, or when the order's bound in time is over: then a *shutdown.Cut names the
// rest, whose tasks are claimed by others when their leases have ended, and whatever their processors still do changes
// nothing. A bound in turns has no meaning here. In a Group the order to the Group does the same.
func (e *Engine) Stop(o shutdown.Order) error {
	terms := o.Policy().Resolved()
	life := e.interrupt()
	bound, cancel := context.WithCancel(life)
	switch {
	case terms.Kind == shutdown.Halting, terms.Kind == shutdown.Suspending:
		cancel()
	case terms.Kind == shutdown.Bounded && terms.Time > 0:
		bound, cancel = context.WithTimeout(life, terms.Time)
	}
	defer cancel()
	select {
	case <-e.idle():
	case <-bound.Done():
	}
	cut := e.finish(life, o)
	e.where().rest(life)
	return cut
}
