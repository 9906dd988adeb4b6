package httpd

import (
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
	return &session{server: v, conn: c}
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
