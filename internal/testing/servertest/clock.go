package servertest

import (
	"sync/atomic"
	"time"
)

// Clock is an act.Clock that stands still unless a test moves it. It begins at a moment in 2026. Any goroutine may call its
// methods, and the zero value is ready to use.
type Clock struct{ now atomic.Int64 }

// Monotonic returns how far the test has moved the clock.
func (c *Clock) Monotonic() time.Duration { return time.Duration(c.now.Load()) }

// Wall returns that time as a date.
func (c *Clock) Wall() time.Time {
	return time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC).Add(c.Monotonic())
}

// Pass lets d pass.
func (c *Clock) Pass(d time.Duration) { c.now.Add(int64(d)) }
