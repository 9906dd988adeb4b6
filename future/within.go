package future

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Within returns a future with the outcome of f if f is resolved within d of the call. Otherwise it fails with an error
// that wraps os.ErrDeadlineExceeded. The goroutine that will resolve f is not told; to tell it, fail f, so that its
// Resolve returns [ErrResolved].
func (f *Future[T]) Within(d time.Duration) *Future[T] {
	x := &within[T]{from: f, to: New[T](f.s), d: d}
	now := f.s.Clock().Monotonic()
	x.until = now + min(d, math.MaxInt64-now)
	x.wait.core = &f.core
	f.s.Spawn(x)
	return x.to
}

type within[T any] struct {
	kind
	from  *Future[T]
	to    *Future[T]
	wait  await
	d     time.Duration
	until time.Duration
	timer act.Timer
}

func (x *within[T]) Act(t *act.Task) act.Directive {
	if x.wait.Act(t) != act.Wait {
		x.to.settle(x.from.Value())
		return act.Done
	}
	if t.Scheduler().Now() < x.until {
		if !x.timer.Armed() {
			t.WakeAt(&x.timer, x.until)
		}
		return act.Wait
	}
	x.to.settle(*new(T), fmt.Errorf("future: not resolved within %v: %w", x.d, os.ErrDeadlineExceeded))
	return act.Done
}

func (x *within[T]) Describe(d *act.Description) { x.wait.Describe(d) }

func (x *within[T]) Close() error {
	_ = x.wait.Close()
	x.to.drop()
	return nil
}
