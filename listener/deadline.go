package listener

import (
	"math"
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
)

// errDeadline is what calls return after their deadline; it is a net.Error with Timeout true.
var errDeadline = os.ErrDeadlineExceeded

// deadlines are those of a Conn, on the scheduler's clock, 0 for none. One timer serves both. It is
// lazy: a deadline that moves away, as after every request, leaves it where it is, and finds it too
// early when it fires.
type deadlines struct {
	read, write time.Duration
	fired       time.Duration // when the timer last fired: deadlines up to then have been told
	timer       act.Timer
}

// SetDeadline sets both deadlines, as net.Conn's does: from then on Peek returns os.ErrDeadlineExceeded
// instead of receiving and Write instead of writing, and whoever waits is woken, once. The zero Time takes
// them away.
func (c *Conn) SetDeadline(at time.Time) error { return c.setDeadlines(at, true, true) }

// SetReadDeadline sets that of Peek and Read. Bytes that are already unread are still returned.
func (c *Conn) SetReadDeadline(at time.Time) error { return c.setDeadlines(at, true, false) }

// SetWriteDeadline sets that of Write. It does not hold for what was taken before: see Limits.Linger.
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

// onClock turns a time of day into one on the scheduler's clock. One that has passed is due at once, also
// for the turn that sets it, whose reading of the clock is older.
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

// passed tells whether a deadline has come. The pass's reading of the clock decides, so that it is the
// same for the timer and for the call after it.
func (b *buffers) passed(deadline time.Duration) bool {
	return deadline != 0 && b.cache.s.Now() >= deadline
}

// schedule sees to it that the timer fires no later than the next deadline that has not passed.
func (b *buffers) schedule() {
	next := b.next()
	switch {
	case next == 0:
		b.timer.Stop()
	case !b.timer.Armed() || b.timer.When() > next:
		b.cache.s.CallAt(&b.timer, next, b)
	}
}

// next is the earlier of the deadlines for which nobody was woken yet, 0 if there is none.
func (b *buffers) next() time.Duration {
	next := time.Duration(0)
	for _, d := range [...]time.Duration{b.read, b.write} {
		if d != 0 && d > b.fired && (next == 0 || d < next) {
			next = d
		}
	}
	return next
}

// Expire wakes who waits for what can no longer come in time, if a deadline has come since it last did.
func (b *buffers) Expire() {
	next := b.next()
	b.fired = b.cache.s.Now()
	if b.passed(next) {
		b.c.stream.Wake()
	}
	b.schedule()
}
