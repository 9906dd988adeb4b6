package httpd

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
)

// Handler answers a request. It runs on the scheduler's thread and must not block. It returns nil if w has the answer, or
// else an action, which takes turns until it is Done: it may wait for timers, for other connections, for offloaded work,
// for more of the body, and for room to write. An action that is an io.Closer is closed when it has finished or is
// dropped; one that is an act.Stopper gets shutdown requests.
//
// Request and Response belong to the handler until it has answered, and are then reused for other requests. Bytes that
// their methods lend are valid until the turn ends; in a later turn call the method again.
//
// If an action fails before any of the answer has been sent, the answer is 500; otherwise the connection is aborted, so
// that no client mistakes a part of the answer for the whole. In both cases the task fails with its error. With [ErrAbort]
// the connection is aborted at any time. A panic aborts the connection without an answer. The action of a client that
// resets the connection is closed. A client that only closes its side may still read, so its action goes on: see
// Request.Ended.
type Handler func(w *Response, r *Request) act.Action

// Server is a server of HTTP: its Serve makes the action of each connection of a service, and Handler answers the requests. It
// may serve any number of services and schedulers at a time, and must not be changed meanwhile.
type Server struct {
	// Handler answers the requests; a [Mux] has one for many paths. It is required: without it Serve panics, so each
	// connection is aborted, and the log says why.
	Handler Handler
	// Connect is the Handler of requests of HTTP/1 with CONNECT, which are refused with 501 if it is nil. It begins a tunnel by
	// Response.Hijack, and writes the 200 itself, or it refuses with a status; the connection is closed after any answer. A
	// target "host:port" is Request.Host, with "/" as the path. Lines of these requests may end in LF alone, as net/rpc
	// sends them: nothing that follows can be taken for a request.
	Connect Handler
	// Timeouts are how long the server waits for a client. The zero Timeouts are good for servers on the Internet.
	Timeouts Timeouts
	// MaxBody is the largest body of a request, in bytes, whatever the handler wants. A request that announces a longer
	// one is answered with 413 at once, before the handler is called and before 100 (Continue). If the length is not
	// announced, Body.Peek fails where the body becomes longer. 0 means no limit: a body that a handler streams takes no
	// memory, and WithBody has a limit of its own. Less than 0 means no limit, too.
	MaxBody int64
	// MaxHead and MaxFields bound the head of a request, in bytes and fields (431). A request line may have a quarter of MaxHead
	// (414). 0 means 64 KiB, and 100 fields. A service with a larger MaxHead needs a listener.Limits.Read that is as large.
	// A request keeps its head until it is answered, and 20 bytes for each field. MaxHeads bounds the heads that have not ended,
	// whatever MaxHead is.
	MaxHead, MaxFields int
	// MaxHeads bounds the memory, in bytes, of the heads on a scheduler that have begun and not ended. One that would
	// exceed it is answered with 503 (HTTP/2: ENHANCE_YOUR_CALM), and its connection is closed. A head that comes in one piece
	// takes none; any other one takes at least 4 KiB, and at most twice its length so far. 0 means 8 MiB, and less than 0 means
	// no bound: then a client that begins many heads and ends none takes up to twice MaxHead with each.
	MaxHeads int
	// MaxStreams bounds the requests that are handled at a time on a connection of HTTP/2. More are refused by RST_STREAM with
	// REFUSED_STREAM, which clients may repeat. Requests that were reset, and whose handlers have not returned, may be as many
	// again. 0 means 128. With less than 0 there is no HTTP/2.
	MaxStreams int
	// OnResponse is called once for each request, for a log such as that of package accesslog: when its response has been
	// given to the connection, or when nothing more of it will be given; up to Limits.High bytes of it may still be queued
	// there. With SwitchProtocols and Hijack that is when HTTP ends. It is also called for refusals, which may have no method
	// and no target, but not for a request that a shutdown drops while its function runs on another goroutine. It must not
	// block, nor keep its arguments. It may be nil.
	OnResponse func(w *Response, r *Request)
	// OnState is called when the state of a connection changes, on the thread of its scheduler. It must not block. To close the
	// connection, post a function that does. It may be nil.
	OnState func(c *listener.Conn, s ConnState)
}

// Timeouts are how long the server waits for a client. Each begins with its phase, and single bytes do not extend it, except
// for bodies whose length is unknown. The zero Timeouts are good for servers on the Internet. A negative time-out means no
// limit.
type Timeouts struct {
	// Head bounds the wait for the first byte of a connection. From the first byte of each request it bounds the arrival
	// of its fields; a slower client gets 408. 0 means 10 s.
	Head time.Duration
	// Idle is how long a connection is kept open without a request, after each answer. 0 means 75 s.
	Idle time.Duration
	// Body is how long a body may pause while a handler wants more of it. A body without a Content-Length is a stream, which may
	// pause that long after each byte. A body with a Content-Length may pause that long in total, but each 240 bytes make up for
	// a second. 0 means 60 s, as with nginx; net/http has no limit. The rest that a handler leaves unread has 5 s, or Body if
	// that is less, whatever its length. Body.SetTimeout changes it for one body.
	Body time.Duration
	// Write is how long a client may take less than 240 bytes a second while there is something to send. Then, at most an
	// eighth of the time later, its connection is aborted. 0 means 60 s, which is 14,400 bytes. Response.SetTimeout
	// changes it for one response.
	Write time.Duration
}

// slowest is the rate, in bytes a second, below which a client is too slow.
const slowest = 240

// Serve makes the action of a connection: pass it to a service or to package program. On a shutdown request idle
// connections are closed, at once or evenly over its Spread (see shutdown.Policy). A new connection without a request has a
// second for its first one, from when it was accepted: see listener.Conn.FirstLeaveTime. Requests that have begun, or come
// before that, are answered, with Connection: close, within the bounds of the shutdown.
func (v *Server) Serve(c *listener.Conn) act.Action {
	if v.Handler == nil {
		panic("httpd: Server without a Handler")
	}
	if v.MaxHead < 0 || v.MaxFields < 0 {
		panic("httpd: Server with a negative MaxHead or MaxFields")
	}
	if v.OnState != nil {
		v.OnState(c, StateNew)
	}
	return &session{link: link{server: v, conn: c}}
}

func (v *Server) handler(connect bool) Handler {
	if connect {
		return v.Connect
	}
	return v.Handler
}

func (v *Server) heads() http1.Limits {
	return http1.Limits{Head: v.MaxHead, Fields: v.MaxFields, Connect: v.Connect != nil}
}

func (v *Server) tooLarge(body int64) bool { return v.MaxBody > 0 && body > v.MaxBody }

func (v *Server) headTime() time.Duration { return timeout.Or(v.Timeouts.Head, 10*time.Second) }
func (v *Server) idleTime() time.Duration { return timeout.Or(v.Timeouts.Idle, 75*time.Second) }
