package future

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Within returns a future that has f's outcome if that comes at most d after the call, and otherwise fails
// with an error that is os.ErrDeadlineExceeded. Whoever works for f is not told: let him ask whether it is still
// wanted, or fail f, which leaves him ErrResolved.
func (f *Future[T]) Within(d time.Duration) *Future[T] {
	x := &within[T]{from: f, to: New[T](f.s), d: d}
	now := f.s.Clock().Monotonic()
	x.until = now + min(d, math.MaxInt64-now)
	x.wait.core = &f.core
	f.s.Spawn(x)
	return x.to
}

type within[T any] struct {
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

func (x *within[T]) Close() error {
	x.wait.leave()
	x.to.drop()
	return nil
}
