package httpd

import (
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/internal/summary"
	"github.com/daimon-go/daimon/listener"
)

// link is what the action of a connection has in both versions of HTTP: who serves it, what it is doing, and how fast the client
// takes what it is sent.
type link struct {
	server   *Server
	conn     *listener.Conn
	timer    timeout.Timer
	peer     net.Addr // with an OnResponse it is asked for with the first request: later the kernel may not know it
	pace     *pace    // of a client that does not take everything at once; else nil
	state    ConnState
	stopping bool // a shutdown request has come
}

// enter tells Server.OnState of another state.
func (l *link) enter(s ConnState) {
	if l.server.OnState != nil && s != l.state {
		l.state = s
		l.server.OnState(l.conn, s)
	}
}

// askPeer finds out the address of the client, if there is an OnResponse that may want it.
func (l *link) askPeer() {
	if l.peer == nil && l.server.OnResponse != nil {
		l.peer = l.conn.RemoteAddr()
	}
}

// give gives bytes to the connection.
func (l *link) give(p []byte) (int, error) {
	if l.pace != nil && l.conn.Queued() == 0 {
		l.pace = nil
	}
	n, err := l.conn.Write(p)
	l.given(int64(n))
	return n, err
}

func (l *link) given(n int64) {
	if l.pace != nil {
		l.pace.put += n
	}
}

// stalled is called when there is no room for more. It reports whether the client has been too slow for all of the window.
func (l *link) stalled(window time.Duration) bool {
	now, p := l.conn.Scheduler().Now(), l.pace
	if p == nil || p.window != window {
		l.pace = &pace{window: window, put: int64(l.conn.Queued()), since: now}
		return false
	}
	if now < p.until() {
		return false
	}
	_ = l.conn.Flush() // a system may report late that there is room; an error is the next call's
	return p.slow(now, p.put-int64(l.conn.Queued()))
}

// timed adds what, and how long is left until when.
func (l *link) timed(d *act.Description, what string, when time.Duration) {
	if when <= 0 || when >= timeout.Never {
		d.WaitsFor(what)
	} else {
		d.Internals().Waits.AddTimed(what, max(0, when-l.conn.Scheduler().Now()))
	}
}

// client is for lines about a client.
func (l *link) client() zap.Field {
	a := l.peer
	if a == nil {
		a = l.conn.RemoteAddr()
	}
	if a == nil {
		return zap.Skip()
	}
	return zap.Stringer("peer", a)
}

// note logs why a client is not served any more: each time at level debug, and a summary of each second at level
// info.
func (l *link) note(t *act.Task, message string, err error) {
	peer := l.client()
	t.Scheduler().Logger().Debug(message, peer, zap.Error(err))
	if err != errHandler && err != ErrAbort { // these are of a handler
		refusals.Add(t.Scheduler(), func(r *refused) { r.n, r.peer, r.last = r.n+1, peer, err })
	}
}

// refused are the requests of a second that were refused, and requests whose clients were cut off.
type refused struct {
	n    int
	peer zap.Field // of the last
	last error
}

var refusals = summary.New(func(log *zap.Logger, r refused) {
	log.Info("requests were refused or cut off", zap.Int("in a second", r.n), r.peer, zap.NamedError("the last", r.last))
})
