package httpd

import (
	"time"

	"github.com/daimon-go/daimon/httpd/internal/timeout"
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
	moved  time.Duration // of a stream: when the client was last seen to have taken something, which is put
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

// patience is how long a client may keep a handler waiting for more of a body.
type patience struct {
	left    time.Duration // that it may still
	allowed time.Duration // the most that is
	since   time.Duration // since when the handler waits, 0 if it does not
}

const (
	standardBody = time.Minute
	standardRest = 5 * time.Second // that nobody wants
)

func (p *patience) grant(d time.Duration) { p.left, p.allowed = d, d }

// begin begins a wait, and returns when it is too long.
func (p *patience) begin(now time.Duration) (end time.Duration) {
	p.since = max(1, now)
	return p.since + p.left
}

// woken ends a wait, with the turn: the handler may not want more any longer.
func (p *patience) woken(now time.Duration) {
	if p.since != 0 {
		p.left -= now - p.since
		p.since = 0
	}
}

// took is called when the handler has taken n more bytes. A body without a length is a stream, which has as much time after each
// byte. Of another body the first megabyte does not buy an hour of silence before the last byte.
func (p *patience) took(n int, stream bool) {
	if stream && n > 0 {
		p.left = p.allowed
	} else {
		p.left = min(p.allowed, p.left+time.Duration(n)*(time.Second/slowest))
	}
}
