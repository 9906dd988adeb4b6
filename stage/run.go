package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage/store"
)

// Run claims tasks and works on them until ctx ends. Then it stops under the policy Config.Shutdown, and returns the
// error of Stop. It blocks, and is for programs without a Group; in a Group use [Engine.Setup]. A store that does not
// answer is logged, and asked again. Run may be called again afterwards; while the engine runs, the error is
// ErrRunning.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.begin(e.alone); err != nil {
		return err
	}
	defer e.conclude()
	defer e.stopAfter(ctx)()
	p := e.current()
	if w, ok := e.cfg.Store.(store.Watcher); ok {
		var watch sync.WaitGroup
		defer watch.Wait()
		watch.Go(func() { e.watch(p, w) })
	}
	if c := newPollers(e, p, e.alone.now); len(c.all) > 0 {
		var pollers sync.WaitGroup
		defer pollers.Wait()
		pollers.Go(func() { c.run(p, nil) })
	}
	for p.Err() == nil { // until the end of a Stop, from wherever it was called
		bell := e.alone.bell
		works, err := e.claim(p)
		e.alone.take(works)
		if err != nil && !errors.Is(err, ErrInterrupted) && p.Err() == nil {
			e.unanswered(e.cfg.Logger, "claim", err)
			bell = nil // not before the next poll
		}
		poll := time.NewTimer(e.polling())
		select {
		case <-p.Done():
		case <-bell:
		case <-poll.C:
		}
		poll.Stop()
	}
	return e.finish(p, nil)
}

// run makes the calls of pollers when they are due and when the bell rings, until ctx ends.
func (c *pollers) run(ctx context.Context, bell <-chan struct{}) {
	for ctx.Err() == nil {
		next := time.NewTimer(c.do(ctx))
		select {
		case <-ctx.Done():
		case <-bell:
		case <-next.C:
		}
		next.Stop()
	}
}

// stopAfter stops the engine when ctx has ended, even while it waits for the store. The function that it returns waits
// for the end of the Stop, or calls it off.
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

type cancelled struct {
	ctx   context.Context
	terms shutdown.Policy
}

func (c cancelled) Policy() shutdown.Policy { return c.terms }
func (c cancelled) Error() string {
	return fmt.Sprintf("the context has ended: %v", context.Cause(c.ctx))
}

// Stop ends the work of this engine, and makes Run return. The engine claims nothing more, and the contexts of its
// processors end with ErrInterrupted. Each task goes back to its last static stage, where other engines may claim it at
// once. That is neither an attempt nor a failure. Stop blocks until all tasks have gone back, and returns nil; if Time
// of o's policy is over before, it returns a [*shutdown.Cut] that names the other tasks. Other engines claim those
// tasks when the leases have ended, and their processors here can change nothing any more. Turns of the policy has no
// meaning here. In a Group, a shutdown of the Group does the same.
func (e *Engine) Stop(o shutdown.Order) error {
	terms := o.Policy().Resolved()
	p := e.interrupt()
	bound, cancel := context.WithCancel(p)
	switch {
	case terms.Kind == shutdown.Halt, terms.Kind == shutdown.Suspend:
		cancel()
	case terms.Kind == shutdown.Bounded && terms.Time > 0:
		bound, cancel = context.WithTimeout(p, terms.Time)
	}
	defer cancel()
	select {
	case <-e.idle():
	case <-bound.Done():
	}
	cut := e.finish(p, o)
	e.where().rest(p)
	return cut
}
