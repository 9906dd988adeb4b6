package listener

import (
	"math"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
)

// deadlines are the deadlines of a Conn, on the scheduler's clock; 0 means none. One timer serves both. It is lazy:
// when a deadline moves away, as after every request, the timer stays, fires too early, and is set again.
type deadlines struct {
	read, write time.Duration
	fired       time.Duration // when the timer last fired: deadlines up to then have been reported
	timer       act.Timer
}

// SetDeadline sets both deadlines, as net.Conn.SetDeadline does. When they have passed, Peek and Write return
// os.ErrDeadlineExceeded instead of receiving and writing, and a waiting task is woken, once. The zero Time removes
// them. After Close it returns net.ErrClosed.
func (c *Conn) SetDeadline(at time.Time) error { return c.setDeadlines(at, true, true) }

// SetReadDeadline sets the deadline of Peek and Read. Bytes that have already been received are still returned. See
// [Conn.SetDeadline].
func (c *Conn) SetReadDeadline(at time.Time) error { return c.setDeadlines(at, true, false) }

// SetWriteDeadline sets the deadline of Write. Bytes that Write has taken are still sent; Limits.Linger bounds that.
// See [Conn.SetDeadline].
func (c *Conn) SetWriteDeadline(at time.Time) error { return c.setDeadlines(at, false, true) }

func (c *Conn) setDeadlines(at time.Time, read, write bool) error {
	if c.stream == nil {
		return net.ErrClosed
	}
	b := c.activate()
	when := b.onClock(at)
	b.fired = 0
	if read {
		b.read = when
	}
	if write {
		b.write = when
	}
	b.schedule()
	return nil
}

// onClock turns a time of day into one on the scheduler's clock. A time that has passed is due at once, even in the
// turn that sets it, whose reading of the clock is older.
func (b *buffers) onClock(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	s := b.cache.s
	left := at.Sub(s.Clock().Wall())
	if left <= 0 {
		return max(1, s.Now())
	}
	now := s.Clock().Monotonic()
	return now + min(left, math.MaxInt64-now)
}

// passed reports whether a deadline has come, by the clock as the pass read it, so that the timer and the calls
// after it agree.
func (b *buffers) passed(deadline time.Duration) bool {
	return deadline != 0 && b.cache.s.Now() >= deadline
}

// schedule sets the timer to the next deadline that has not passed, or earlier.
func (b *buffers) schedule() {
	next := b.next()
	switch {
	case next == 0:
		b.timer.Stop()
	case !b.timer.Armed() || b.timer.When() > next:
		b.cache.s.CallAt(&b.timer, next, b)
	}
}

// next returns the earlier of the deadlines that have not been reported; 0 if there is none.
func (b *buffers) next() time.Duration {
	next := time.Duration(0)
	for _, d := range [...]time.Duration{b.read, b.write} {
		if d != 0 && d > b.fired && (next == 0 || d < next) {
			next = d
		}
	}
	return next
}

// Expire wakes the waiting task if a deadline has come since Expire was last called.
func (b *buffers) Expire() {
	next := b.next()
	b.fired = b.cache.s.Now()
	if b.passed(next) {
		b.c.stream.Wake()
	}
	b.schedule()
}
