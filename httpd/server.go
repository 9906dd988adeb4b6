package httpd

import (
	"errors"
	"math"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Handler answers a request, on the scheduler's thread, so it must not block. Nil means that w has the answer.
// Otherwise the action it returns takes turns until it is Done: it may wait for timers, for other connections, for
// offloaded work, for more of the body, and for room to write. An action that is an io.Closer is closed when it has
// finished, or when it is dropped; one that is an act.Stopper is told of orders.
//
// Request and Response are the handler's until it has answered, and are used again afterwards. What their accessors
// lend is valid until the turn ends; in a later turn ask again.
//
// An action that fails is answered with 500 if nothing of the answer has been sent, otherwise the connection is
// aborted, so that no client takes a part for the whole. Its error is reported in either case. So is a panic, which
// aborts the connection without an answer. An action whose client has reset the connection is closed; one whose client
// has only closed its side is not, since that client may still read: see Request.Ended.
//
// What is written before a Handler returns is kept, however much it is. An action is to heed what Write returns.
type Handler func(w *Response, r *Request) act.Action

// Server makes the actions of connections: its Serve is the handler of a service.
//
//	web := &httpd.Server{Handler: hello}
//	tcp := &service.TCP{Address: "127.0.0.1:8080", Handler: web.Serve}
//	err := act.Run(ctx, act.Config{}, tcp.Setup, monitor.Signals(shutdown.Policy{}))
//
// It may serve any number of services and schedulers at a time, and is not changed meanwhile.
type Server struct {
	Handler  Handler
	Timeouts Timeouts
	// OnResponse is called once for each request when its response has been given to the connection, or when it is clear
	// that no more of it will be: for a log. It is called for refusals, too: then there may be no method and no target.
	// It must not block, nor keep what it is given, and it is not called for a request that an order drops in the middle
	// of an offloaded function. Nil is not called.
	OnResponse func(w *Response, r *Request)
}

// Timeouts are how long the server waits for a client. Each begins with its phase, and single bytes do not move it.
// The zero Timeouts are good for servers on the open net; a negative one is no limit.
type Timeouts struct {
	// Head is for the first byte of the first request, and again from the first byte of any request to the end of
	// its fields. Who takes longer for the latter is answered with 408. 0 means 10 s.
	Head time.Duration
	// Idle is how long a connection is kept between two requests. 0 means 75 s.
	Idle time.Duration
	// Body is how long the server waits, all in all, for a body that comes slower than 240 bytes a second. Only the
	// time counts in which a handler wants more of it. 0 means 5 s.
	Body time.Duration
	// Write is how long a client may take less than 240 bytes a second of what waits to be sent; then it is cut off.
	// 0 means 60 s, so 14,400 bytes.
	Write time.Duration
}

// slowest is the rate, in bytes a second, below which a client is too slow.
const slowest = 240

// Serve makes the action of a connection. On an order idle connections are closed at once, requests that have begun
// are answered, with Connection: close, and whatever bounds the order has bound that.
func (v *Server) Serve(c *listener.Conn) act.Action {
	if v.Handler == nil {
		panic("httpd: Server without a Handler")
	}
	return &session{server: v, home: homes.Get(c.Scheduler()), conn: c}
}

// or is d, or standard if that is 0, or never if it is negative.
func or(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return never
	}
	return d
}

// never is later than any server lives, and can be added to.
const never time.Duration = math.MaxInt64 / 2

// home is what all connections of a scheduler share: the exchanges that are not in use, and the second's date.
type home struct {
	s       *act.Scheduler
	idle    []*exchange
	scratch []byte // for the head of a response
	date    date
}

var homes = act.NewLocal(func(s *act.Scheduler) *home { return &home{s: s} })

// keepExchanges bounds how many are kept for the next requests.
const keepExchanges = 64

func (h *home) take(x *session) *exchange {
	if n := len(h.idle); n > 0 {
		e := h.idle[n-1]
		h.idle = h.idle[:n-1]
		e.x = x
		return e
	}
	e := &exchange{x: x}
	e.in.Body.e, e.out.e = e, e
	e.reset()
	return e
}

func (h *home) give(e *exchange) {
	e.x = nil
	if len(h.idle) < keepExchanges {
		e.reset()
		h.idle = append(h.idle, e)
	}
}

// exchange is a request and its response, from the first octet of the one until the last of the other is on its way.
// A connection at rest has none.
type exchange struct {
	x      *session
	in     Request
	out    Response
	action act.Action // the handler's, if it is not done in one go
	// failure is the handler's. The client has been told, and in the end the task fails with it.
	failure error
	told    bool // Server.OnResponse has been called
	away    bool // the action belongs to an offloaded function
}

func (e *exchange) reset() {
	e.in.reset()
	e.out.reset()
	e.action, e.failure, e.told, e.away = nil, nil, false, false
}

// over tells whoever wants to know that this is what became of a request.
func (e *exchange) over() {
	if e.x.server.OnResponse == nil || e.told || e.in.head.length == 0 && !e.out.sent {
		return // or it is none
	}
	e.told = true
	e.x.server.OnResponse(&e.out, &e.in)
}

// caused tells whether err comes from the connection, and not from something else that the handler was busy with.
func (e *exchange) caused(err error) bool {
	return e.out.lost != nil && errors.Is(err, e.out.lost) || e.in.Body.err != nil && errors.Is(err, e.in.Body.err)
}

// failure is a handler's. It does not unwrap: the reset of another connection that a handler has met must not be taken,
// by the service, for one of this connection, which is no failure.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// lasts tells whether the connection cannot go on behind the response. All of the content is there if it is final.
func (e *exchange) lasts(final bool) bool {
	b := &e.in.Body
	return e.x.stopping || !e.in.persistent || b.err != nil ||
		b.asks || // the client may send the body, or not: nobody knows what would be next (RFC 9110 10.1.1)
		final && b.left > drainable
}
