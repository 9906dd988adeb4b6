package httpd

import (
	"cmp"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"time"
)

// pace measures how fast a client takes what it is sent, in however many responses: from when something could not go out at
// once, until all has gone out. It is a window of Timeouts.Write, which moves on with each poll: bytes that the kernel's
// buffers take when a client stops buy no more time than one poll.
type pace struct {
	window time.Duration
	put    int64         // bytes given to the connection, including the ones queued at the beginning
	taken  [looks]int64  // how many of them the client had taken at the latest polls
	n      int           // polls so far
	since  time.Duration // when the latest one was
}

// looks is how many polls there are in a window.
const looks = 8

// until returns when the next poll is due.
func (p *pace) until() time.Duration { return p.after(1) }

// cut returns when a client that takes nothing may be cut off, at the earliest.
func (p *pace) cut() time.Duration {
	if p == nil {
		return timeout.Never
	}
	return p.after(max(1, looks-p.n))
}

// after returns when n further polls are over.
func (p *pace) after(n int) time.Duration {
	if p == nil || p.window == timeout.Never { // nil: all has gone out meanwhile
		return timeout.Never
	}
	return p.since + p.window/looks*time.Duration(n)
}

// slow is a poll: the client has taken so many bytes. It reports whether the client was too slow in all of the
// window.
func (p *pace) slow(now time.Duration, taken int64) bool {
	before := &p.taken[p.n%looks] // at the beginning of the window
	slow := p.n >= looks-1 && float64(taken-*before) < p.window.Seconds()*slowest
	*before = taken
	p.n, p.since = p.n+1, now
	return slow
}

// give gives bytes to the connection.
func (x *session) give(p []byte) (int, error) {
	if x.pace != nil && x.conn.Queued() == 0 {
		x.pace = nil
	}
	n, err := x.conn.Write(p)
	x.given(int64(n))
	return n, err
}

func (x *session) given(n int64) {
	if x.pace != nil {
		x.pace.put += n
	}
}

// stalled is called when there is no room for more. It reports whether the client has been too slow for all of
// Timeouts.Write.
func (x *session) stalled() bool {
	now, p, window := x.conn.Scheduler().Now(), x.pace, x.writeTimeout()
	if p == nil || p.window != window {
		x.pace = &pace{window: window, put: int64(x.conn.Queued()), since: now}
		return false
	}
	if now < p.until() {
		return false
	}
	_ = x.conn.Flush() // a system may report late that there is room; an error is the next call's
	return p.slow(now, p.put-int64(x.conn.Queued()))
}

// writeTimeout is that of the present response, or the server's.
func (x *session) writeTimeout() time.Duration {
	return timeout.Or(cmp.Or(x.exchange.out.timeout, x.server.Timeouts.Write), time.Minute)
}
