// Package timeout has the time-outs of the connections of HTTP and of WebSocket.
package timeout

import (
	"cmp"
	"math"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Never is later than any server lives. Adding two of them does not overflow.
const Never time.Duration = math.MaxInt64 / 4

// Or returns d, or standard if d is 0, or Never if d is negative.
func Or(d, standard time.Duration) time.Duration {
	if d = cmp.Or(d, standard); d < 0 {
		return Never
	}
	return d
}

// Timer wakes a task that waits for a peer. It is lazy: it may fire earlier than it was set to, which costs a turn, while to move
// it for each message would cost each message.
type Timer struct{ timer act.Timer }

// WakeAt has t woken at the given time or earlier, or not at all from Never on.
func (x *Timer) WakeAt(t *act.Task, when time.Duration) {
	if when < Never && (!x.timer.Armed() || x.timer.When() > when) {
		t.WakeAt(&x.timer, when)
	}
}

// Stop has it wake the task no more.
func (x *Timer) Stop() { x.timer.Stop() }
