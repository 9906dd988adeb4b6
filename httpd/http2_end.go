package httpd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// The times of a connection that no setting has.
const (
	silentTime  = 75 * time.Second // that a client with a request may be silent, until PING asks whether it is there
	answerTime  = 15 * time.Second // for the answer to that
	warningTime = time.Second      // for the answer to the PING after the first GOAWAY
)

// mostID is the highest number that a stream can have.
const mostID = 1<<31 - 1

// warned is the PING after the first GOAWAY: what comes before its answer was sent before the client knew of the end.
var warned = [8]byte{'g', 'o', 'i', 'n', 'g'}

// watch ends what takes too long, and has a turn come in time for what may. It reports whether it has ended something, which may
// lead to more.
func (x *http2Conn) watch(t *act.Task) (again bool) {
	if x.phase >= ending {
		return false
	}
	now, when := t.Scheduler().Now(), timeout.Never
	due := func(at time.Duration) bool {
		when = min(when, at)
		return now >= at
	}
	held, bad := 0, (*syntax.Refusal)(nil)
	if !x.midway() {
		x.begun = 0
	} else if held, x.begun = x.conn.Buffered()+x.decoder.Held(), max(1, cmp.Or(x.begun, now)); due(x.begun + x.server.headTime()) {
		x.cache.counts.floods[ofSlow]++
		bad = errSlowHead
	}
	if !x.cache.hold(&x.held, held, x.server) {
		x.cache.counts.floods[http2.OfBlocks]++
		bad = errCrowded
	}
	if bad != nil {
		x.note(t, "a client of HTTP/2 is refused", bad)
		x.end(&http2.Error{Code: http2.EnhanceYourCalm, Why: bad.Why})
		return true
	}
	switch {
	case x.stopping && x.phase < warning && due(x.leave):
		x.warn()
		return true
	case x.phase == warning && due(x.since+warningTime):
		x.goAway(http2.NoError, "")
		return true
	case len(x.streams) == 0 && (x.phase == gone || x.eof || due(x.idle+x.server.idleTime())):
		x.goAway(http2.NoError, "")
		x.phase = ending
		return true
	case len(x.streams) == 0:
	case x.pinged == 0 && due(x.heard+silentTime):
		x.pinged = max(1, now)
		x.out = http2.AppendPing(x.buffer(), false, [8]byte{})
		return true
	case x.pinged != 0 && due(x.pinged+answerTime):
		x.cache.counts.floods[ofSlow]++
		x.lose(ErrSlow)
		return true
	}
	busy := len(x.streams) > 0
	x.timer.WakeAt(t, min(when, x.stalls(t, now)))
	return busy && len(x.streams) == 0
}

// midway reports whether a part of a frame, or of a field block, has come, and not the rest. A body has time-outs of its own.
func (x *http2Conn) midway() bool {
	if x.eof || len(x.out) >= fullOut {
		return false
	}
	return x.phase == opening || x.block.h.Stream != 0 || x.data.left+x.data.padding == 0 && x.conn.Buffered() > 0
}

// stalls resets the streams whose clients leave them no window for too long, or go on with a body that nobody wants. It returns
// when it is to be called again.
func (x *http2Conn) stalls(t *act.Task, now time.Duration) (next time.Duration) {
	next = timeout.Never
	for i := len(x.streams) - 1; i >= 0; i-- { // one that is reset may be gone at once
		s := x.streams[i]
		if s.until != 0 && now >= s.until {
			s.resetHere(http2.NoError, errUnread)
			continue
		}
		next = min(next, cmp.Or(s.until, timeout.Never))
		if s.lost != nil || s.pending() == 0 || s.tunnel != nil && !s.closing {
			s.pace = nil
			continue
		}
		window := s.out.writeTimeout(x.server)
		switch p := s.pace; {
		case p == nil || p.window != window:
			s.pace = &pace{window: window, since: now, put: s.sent, moved: now}
		case now >= p.until() && p.slow(now, s.sent):
			x.note(t, "a stream is cut", ErrSlow)
			x.cache.counts.floods[ofSlow]++
			s.resetHere(http2.Cancel, ErrSlow)
			continue
		}
		if p := s.pace; p.put != s.sent {
			p.put, p.moved = s.sent, now
		}
		next = min(next, s.pace.until())
	}
	return next
}

// writeTimeout is the longest of the streams', since they share the connection.
func (x *http2Conn) writeTimeout() time.Duration {
	longest := timeout.Or(x.server.Timeouts.Write, time.Minute)
	for _, s := range x.streams {
		longest = max(longest, s.out.writeTimeout(x.server))
	}
	return longest
}

// Stop has the connection end at its time, with what it has begun.
func (x *http2Conn) Stop(t *act.Task, _ shutdown.Order) {
	if x.stopping {
		return
	}
	if x.stopping = true; x.last == 0 {
		x.leave = x.conn.FirstLeaveTime(t)
	} else {
		x.leave = t.NextLeaveTime()
	}
	x.leave = max(1, x.leave)
}

// leaveNow has the connection end with the requests that it has.
func (x *http2Conn) leaveNow() {
	x.stopping, x.leave = true, x.cache.s.Now()
	x.waker.Wake()
}

// warn is the first half of the end: requests that are on their way are answered (RFC 9113 6.8).
func (x *http2Conn) warn() {
	x.phase, x.since = warning, x.cache.s.Now()
	x.out = http2.AppendGoAway(x.buffer(), mostID, http2.NoError, "")
	x.out = http2.AppendPing(x.out, false, warned)
}

// goAway says which requests are answered.
func (x *http2Conn) goAway(code http2.Code, why string) {
	if x.phase < gone {
		x.phase = gone
		x.out = http2.AppendGoAway(x.buffer(), x.last, code, why)
	}
}

// end ends the connection because of a mistake: what was answered is sent, and everything else is dropped.
func (x *http2Conn) end(bad *http2.Error) {
	if x.phase >= ending {
		return
	}
	x.out = http2.AppendGoAway(x.buffer(), x.last, bad.Code, bad.Why)
	x.phase = ending
	x.dropAll(bad)
}

// lose is called when the client cannot be told anything.
func (x *http2Conn) lose(err error) {
	if x.phase != lost {
		x.phase, x.failure = lost, err
		x.dropAll(err)
	}
}

// dropAll has all streams end with an error.
func (x *http2Conn) dropAll(err error) {
	for _, s := range slices.Clone(x.streams) {
		s.reset(http2.Closed, err)
	}
	x.data.to, x.block.to = nil, nil
	x.cache.hold(&x.held, 0, nil)
}

// halfClosed is called when the client has closed its side: it may still be reading.
func (x *http2Conn) halfClosed() {
	x.eof = true
	for _, s := range slices.Clone(x.streams) {
		if !s.hasAll() && s.bad == nil {
			s.bad = errCut
			s.reader.Wake()
		}
		if s.tunnel != nil {
			s.tunnel.end.Wake()
		}
		if s.watch == heard {
			s.waker.Wake()
		}
		s.settle()
	}
}

// finish closes the connection when everything has been handed to the kernel.
func (x *http2Conn) finish(t *act.Task) act.Directive {
	err := x.conn.Sent()
	switch {
	case err == nil:
		_ = x.conn.Internals().CloseWithin(idleLinger) // an error means that the client has gone
	case !isBlocked(err), x.stalled(x.writeTimeout()):
		x.conn.Abort()
	default:
		x.timer.WakeAt(t, x.pace.until())
		return listener.Next(t, err)
	}
	x.enter(StateClosed)
	return act.Done
}

// Close is called when the task is over. The streams that are left have tasks, which are told.
func (x *http2Conn) Close() error {
	x.timer.Stop()
	x.lose(act.ErrDropped)
	x.cache.hold(&x.held, 0, nil)
	x.enter(StateClosed)
	return nil
}

// IdleSince tells a service at MaxConns since when nothing is lost by closing the connection.
func (x *http2Conn) IdleSince() (since time.Duration, idle bool) {
	return x.idle, len(x.streams) == 0 && (x.begun == 0 || x.phase == opening) && x.phase <= serving && x.conn.Queued() == 0
}

func (x *http2Conn) String() string { return "httpd: a connection of HTTP/2" }

// Check is that of HTTP/2, if the connection has become one.
func (x *session) Check() error {
	if x.next != nil {
		if c, is := x.next.Action.(*http2Conn); is {
			return c.Check()
		}
	}
	return nil
}

// Check returns an error if bytes of DATA are neither in a window nor held nor thrown away. It is for worlds, and for builds with
// the race detector.
func (x *http2Conn) Check() error {
	err := x.inflow.Check()
	if n := x.data.left + x.data.padding; err == nil && n != int(x.inflow.Held()) {
		err = fmt.Errorf("httpd: %d bytes of DATA are held, of which %d are there", x.inflow.Held(), n)
	}
	for _, s := range x.streams {
		n := len(s.body) - s.from
		if x.data.to == s {
			n += x.data.left + x.data.padding
		}
		if err = cmp.Or(err, s.inflow.Check()); err == nil && s.lost == nil && n != int(s.inflow.Held()) {
			err = fmt.Errorf("httpd: %d bytes of DATA are held for stream %d, of which %d are there", s.inflow.Held(), s.id, n)
		}
	}
	return err
}

// Describe says what the connection waits for, and what its streams have for a client that leaves them no window.
func (x *http2Conn) Describe(d *act.Description) {
	said := d.Internals()
	for _, s := range x.streams {
		if s.pace == nil {
			continue
		}
		if said.Queued += s.pending(); s.pace.put == s.sent {
			said.Stuck = max(said.Stuck, x.cache.s.Now()-s.pace.moved)
		}
	}
	switch n := len(x.streams); {
	case x.phase == ending:
		x.timed(d, "the client to take the last response", x.pace.cut())
	case x.begun != 0:
		x.timed(d, "the rest of a frame", x.begun+x.server.headTime())
	case n == 0:
		x.timed(d, "the next request", x.idle+x.server.idleTime())
	default:
		d.WaitsFor("its streams: " + strconv.Itoa(n))
	}
}
