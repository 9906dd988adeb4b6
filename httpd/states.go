package httpd

import (
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/summary"
)

// ConnState is what a connection is doing. The values are the same as in http.ConnState.
type ConnState uint8

const (
	// StateNew is a connection that has been accepted and has passed the filters of its service, such as the
	// handshake of TLS.
	StateNew ConnState = iota
	// StateActive is a connection on which a request has begun to come and is not answered yet.
	StateActive
	// StateIdle is a connection between two requests.
	StateIdle
	// StateHijacked is a connection that has switched to another protocol, or was hijacked. No state follows.
	StateHijacked
	// StateClosed is a connection that is closed, or will be when its last bytes are sent. No state follows.
	StateClosed
)

// enter tells Server.OnState of another state.
func (x *session) enter(s ConnState) {
	if f := x.server.OnState; f != nil && s != x.state {
		x.state = s
		f(x.conn, s)
	}
}

// note logs why a client is not served any more: each time at level debug, and a summary of each second at level
// info.
func (x *session) note(t *act.Task, message string, err error) {
	peer := x.client()
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
