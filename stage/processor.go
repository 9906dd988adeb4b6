package stage

import (
	"context"
	"errors"
	"fmt"
)

// Processor does the work of a dynamic stage.
type Processor interface {
	// Process computes first and writes last: what it returns is called in the transaction that makes the stage's
	// static one visible; nil writes nothing. It runs off the schedulers' threads and may block. t is a snapshot
	// that is its own.
	//
	// ctx ends when the stage is not to go on, and then says why: see CheckSuspended. A Process that returns
	// after that, whatever it returns, has done nothing: the task is rolled back. One that returns an error is
	// tried again, as Config.Attempts and Backoff say, unless the error is Permanent. One that returns
	// ErrSuspended although nobody has asked for it suspends its task.
	Process(ctx context.Context, t *Task) (Commit, error)
}

// ProcessorFunc is a Processor made of a function.
type ProcessorFunc func(ctx context.Context, t *Task) (Commit, error)

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, t *Task) (Commit, error) { return f(ctx, t) }

// Provider gives the processors of a chain by their ids.
type Provider interface {
	// Processor returns the processor with that id. It is asked whenever a stage begins, from any goroutine, and
	// must not block. An error is the task's, as if the processor had returned it: it is tried again, perhaps by an
	// engine of another release that knows the processor.
	Processor(id string) (Processor, error)
}

// Processors is the Provider that is a map.
type Processors map[string]Processor

// Processor returns ps[id].
func (ps Processors) Processor(id string) (Processor, error) {
	if p := ps[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("stage: no processor %q", id)
}

// CheckSuspended is for a processor to call every now and then. It returns nil while the stage is to go on, and then
// why it is not: ErrSuspended, ErrCancelled, ErrInterrupted when the engine ends, ErrLeaseLost when another worker
// may have the task by now. Who waits for something waits for ctx.Done beside; context.Cause says why, too.
//
// A request that was made through this engine is seen at once, others with the next heartbeat.
func CheckSuspended(ctx context.Context) error { return context.Cause(ctx) }

// ErrInterrupted is why the context of a stage has ended whose engine is stopping.
var ErrInterrupted = errors.New("stage: interrupted")

// Permanent makes err one that trying again would not mend: the task is in Error until somebody resumes it. nil stays
// nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// ErrPermanent is what an error of Permanent is, for errors.Is.
var ErrPermanent = errors.New("stage: permanent")

type permanent struct{ error }

func (p permanent) Unwrap() error        { return p.error }
func (p permanent) Is(target error) bool { return target == ErrPermanent }

// Listener hears of the stages of tasks, in this order: the dynamic stage is shown, Before, the processor, After, the
// static stage is shown. It is called where the processor is, with the same context, and must not change t.
type Listener interface {
	// Before a stage. An error is the stage's: the processor is not called.
	Before(ctx context.Context, t *Task) error
	// After a stage whose processor has done its work; not after one that failed or was ended before. An error is
	// the stage's, as if the processor had returned it: nothing is written, since that comes later.
	After(ctx context.Context, t *Task) error
}

// Listened is p with listeners of its own, called in order.
func Listened(p Processor, listeners ...Listener) Processor {
	return ProcessorFunc(func(ctx context.Context, t *Task) (Commit, error) {
		for _, l := range listeners {
			if err := l.Before(ctx, t); err != nil {
				return nil, fmt.Errorf("before %s: %w", t.Stage, err)
			}
		}
		commit, err := p.Process(ctx, t)
		for _, l := range listeners {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return nil, err
			}
			if err = l.After(ctx, t); err != nil {
				return nil, fmt.Errorf("after %s: %w", t.Stage, err)
			}
		}
		return commit, err
	})
}
