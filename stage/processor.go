package stage

import (
	"context"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Processor does the work of a dynamic stage. It computes first and writes last: the Commit that it returns is called
// in the transaction that makes the static stage visible; nil writes nothing. A Processor is called on a goroutine that
// is not a scheduler's, and may block. t is a snapshot that belongs to it. Config.Middleware wraps processors, and
// [Typed] decodes their Data.
//
// ctx ends when the stage has to stop, and CheckSuspended says why. If the Processor returns after that, whatever it
// returns, the task is rolled back. After an error the stage is tried again, as Kind.Attempts and Backoff say, unless
// the error is [Permanent]. A Processor that returns store.ErrSuspended without a request suspends its task, and one
// that returns [Snooze] puts it off.
type Processor func(ctx context.Context, t *store.Task) (store.Commit, error)

// CheckSuspended returns nil while the stage may go on, and otherwise why it has to stop: store.ErrSuspended or
// store.ErrCanceled after a request, ErrInterrupted when the engine stops, store.ErrLeaseLost when another worker may
// hold the task by now, or ErrTimeout. A processor that takes long calls it regularly, or waits for ctx.Done, and
// returns the error. It is another name of context.Cause(ctx).
//
// A request through this engine is seen at once, and a request from elsewhere with the next heartbeat.
func CheckSuspended(ctx context.Context) error { return context.Cause(ctx) }

// ErrTimeout is the cause (context.Cause) with which the context of a processor ends after Kind.Timeout.
var ErrTimeout = errors.New("stage: the processor has taken too long")

// ErrInterrupted is the cause with which the context of a processor ends when the engine stops, and the error of Fire after Stop.
var ErrInterrupted = errors.New("stage: interrupted")

// Permanent wraps err as an error after which the stage is not tried again: errors.Is finds store.ErrPermanent in it,
// and the task stays Failed until [Engine.Retry]. Permanent(nil) is nil.
func Permanent(err error) error { return transition.Permanent(err) }

// Snooze returns an error with which a Processor, or its Commit, puts its task off, for example because a service that
// it needs is down. The task goes back to its last static stage. The stage begins again after the duration, by the
// store's clock, when an engine polls (Config.Poll), or at once if the duration is 0 or less. That is neither an
// attempt nor a failure, so a task may be put off any number of times.
func Snooze(after time.Duration) error { return snooze(max(0, after)) }

type snooze time.Duration

func (s snooze) Error() string { return "stage: put off by " + time.Duration(s).String() }
