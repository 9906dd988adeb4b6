package stage

import (
	"context"
	"errors"
	"fmt"
)

// Processor does the work of a dynamic stage.
type Processor interface {
	// Process computes first and writes last: the Commit that it returns is called in the transaction that makes the
	// static stage visible; nil writes nothing. Process runs off the schedulers' threads and may block. t is a snapshot
	// of its own.
	//
	// ctx ends when the stage has to stop, and CheckSuspended says why. If Process returns after that, whatever it
	// returns, the task is rolled back. After an error the stage is tried again, as Config.Attempts and Backoff say,
	// unless the error is ErrPermanent. A Process that returns ErrSuspended without a request suspends its task.
	Process(ctx context.Context, t *Task) (Commit, error)
}

// ProcessorFunc is a function as a Processor.
type ProcessorFunc func(ctx context.Context, t *Task) (Commit, error)

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, t *Task) (Commit, error) { return f(ctx, t) }

// Provider finds processors by their ids.
type Provider interface {
	// Processor returns the processor with that id. It is called whenever a stage begins, from any goroutine, and must
	// not block. An error counts as one of the processor: the stage is tried again, perhaps by an engine of another
	// release that knows the processor.
	Processor(id string) (Processor, error)
}

// Processors is a map as a Provider.
type Processors map[string]Processor

// Processor returns ps[id].
func (ps Processors) Processor(id string) (Processor, error) {
	if p := ps[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("stage: no processor %q", id)
}

// CheckSuspended returns nil while the stage may go on, and otherwise why it has to stop: ErrSuspended, ErrCanceled,
// ErrInterrupted when the engine stops, ErrLeaseLost when another worker may hold the task by now. A processor calls it
// every now and then, or waits for ctx.Done. It is context.Cause(ctx) under a name that says what it is for.
//
// A request that was made through this engine is seen at once, and one that was made elsewhere is seen with the next
// heartbeat.
func CheckSuspended(ctx context.Context) error { return context.Cause(ctx) }

// ErrInterrupted is the cause of a context that has ended because the engine stops.
var ErrInterrupted = errors.New("stage: interrupted")

// Permanent wraps err as one that is not tried again: the task stays in Error until it is resumed. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// ErrPermanent matches the errors that Permanent returns, for errors.Is.
var ErrPermanent = errors.New("stage: permanent")

type permanent struct{ error }

func (p permanent) Unwrap() error        { return p.error }
func (p permanent) Is(target error) bool { return target == ErrPermanent }

// Interceptor is called around processors, in this order: the dynamic stage is shown, Before, the processor, After, the
// static stage is shown. It is called on the processor's goroutine with the same context, and must not change t.
type Interceptor interface {
	// Before is called before a stage. An error fails the stage, and the processor is not called.
	Before(ctx context.Context, t *Task) error
	// After is called after a processor that has succeeded, unless the context has ended. An error fails the stage, and
	// nothing is written, since that comes later.
	After(ctx context.Context, t *Task) error
}

// Intercepted returns p with interceptors of its own, called in order.
func Intercepted(p Processor, interceptors ...Interceptor) Processor {
	return ProcessorFunc(func(ctx context.Context, t *Task) (Commit, error) {
		for _, i := range interceptors {
			if err := i.Before(ctx, t); err != nil {
				return nil, fmt.Errorf("before %s: %w", t.Stage, err)
			}
		}
		commit, err := p.Process(ctx, t)
		for _, i := range interceptors {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return nil, err
			}
			if err = i.After(ctx, t); err != nil {
				return nil, fmt.Errorf("after %s: %w", t.Stage, err)
			}
		}
		return commit, err
	})
}
