package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Processor does the work of a dynamic stage.
type Processor interface {
	// Process computes first and writes last: the Commit that it returns is called in the transaction that makes the
	// static stage visible; nil writes nothing. Process runs off the schedulers' threads and may block. t is a snapshot
	// of its own.
	//
	// ctx ends when the stage has to stop, and CheckSuspended says why. If Process returns after that, whatever it
	// returns, the task is rolled back. After an error the stage is tried again, as Config.Attempts and Backoff say,
	// unless the error is store.ErrPermanent. A Process that returns store.ErrSuspended without a request suspends its task, and one that
	// returns Snooze puts it off.
	Process(ctx context.Context, t *store.Task) (store.Commit, error)
}

// ProcessorFunc is a function as a Processor.
type ProcessorFunc func(ctx context.Context, t *store.Task) (store.Commit, error)

// Process calls f.
func (f ProcessorFunc) Process(ctx context.Context, t *store.Task) (store.Commit, error) {
	return f(ctx, t)
}

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

// CheckSuspended returns nil while the stage may go on, and otherwise why it has to stop: store.ErrSuspended, store.ErrCanceled,
// ErrInterrupted when the engine stops, store.ErrLeaseLost when another worker may hold the task by now, ErrTimeout. A processor
// calls it every now and then, or waits for ctx.Done. It is context.Cause(ctx) under a name that says what it is for.
//
// A request that was made through this engine is seen at once, and one that was made elsewhere is seen with the next
// heartbeat.
func CheckSuspended(ctx context.Context) error { return context.Cause(ctx) }

// ErrTimeout is the cause of a context that has ended because of Config.Timeout or Kind.Timeout.
var ErrTimeout = errors.New("stage: the processor has taken too long")

// ErrInterrupted is the cause of a context that has ended because the engine stops.
var ErrInterrupted = errors.New("stage: interrupted")

// Permanent wraps err as one that is not tried again: it is a store.ErrPermanent, and the task stays Failed until it is resumed. nil
// stays nil.
func Permanent(err error) error { return transition.Permanent(err) }

// Snooze returns an error with which a Processor, or its Commit, puts its task off. The task goes back to its last static
// stage. The stage begins again after that long, by the store's clock, when an engine polls (Config.Poll), or at once if the
// duration is 0 or less. That is neither an attempt nor a failure, so a task may be put off any number of times.
func Snooze(after time.Duration) error { return snooze(max(0, after)) }

type snooze time.Duration

func (s snooze) Error() string { return "stage: put off by " + time.Duration(s).String() }

// Middleware returns a Processor that calls next, and does something around it, such as tracing, counting or checks. It is
// called whenever a stage begins. To wrap a single processor, call it where the Provider has that processor.
//
// Its Process is called on the goroutine and with the context of the processor's, or with a context derived from it. What it
// returns counts as returned by the processor. A panic of the processor passes through it. The Commit comes later: to see
// that, return another Commit that calls the one of next.
type Middleware func(next Processor) Processor

// wrapped returns p in all of the middleware, the first one outside.
func wrapped(p Processor, all []Middleware) Processor {
	for _, m := range slices.Backward(all) {
		p = m(p)
	}
	return p
}
