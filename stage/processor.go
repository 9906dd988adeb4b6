package stage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Processor does the work of a dynamic stage. It computes first and writes last: the Commit that it returns is called in the
// transaction that makes the static stage visible; nil writes nothing. A Processor runs off the schedulers' threads and may block.
// t is a snapshot of its own.
//
// ctx ends when the stage has to stop, and CheckSuspended says why. If the Processor returns after that, whatever it returns, the
// task is rolled back. After an error the stage is tried again, as Kind.Attempts and Backoff say, unless the error is
// [Permanent]. A Processor that returns store.ErrSuspended without a request suspends its task, and one that returns [Snooze] puts
// it off.
type Processor func(ctx context.Context, t *store.Task) (store.Commit, error)

// CheckSuspended returns nil while the stage may go on, and otherwise why it has to stop: store.ErrSuspended, store.ErrCanceled,
// ErrInterrupted when the engine stops, store.ErrLeaseLost when another worker may hold the task by now, ErrTimeout. A processor
// calls it every now and then, or waits for ctx.Done. It is context.Cause(ctx) under a name that says what it is for.
//
// A request that was made through this engine is seen at once, and one that was made elsewhere is seen with the next
// heartbeat.
func CheckSuspended(ctx context.Context) error { return context.Cause(ctx) }

// ErrTimeout is the cause of a context that has ended because of Kind.Timeout.
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

// wrapped returns p in all of the middleware, the first one outside.
func wrapped(p Processor, all []func(Processor) Processor) Processor {
	for _, m := range slices.Backward(all) {
		p = m(p)
	}
	return p
}
