// Package traffic keeps a server of HTTP and WebSocket under load, and counts every failure that its clients see: what a server
// that ends or is replaced may not do to them. It is for tests and measurements.
package traffic

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is a kind of failure. A connection that ends after an answer with "Connection: close", or at rest, is not a
// failure.
type Kind int

// The kinds of failures.
const (
	Refused Kind   = iota // no connection could be made
	Reset                 // a connection ended before the first answer on it, or was reset at rest
	Race                  // a connection ended before a later answer: it was closed while the request was on its way
	Cut                   // a connection ended in the middle of an answer, or of WebSocket without a close frame
	Wrong                 // another status than 200, or no answer within Patience
	Kinds   = iota        // how many kinds there are
)

// String returns the kind in one word.
func (k Kind) String() string { return [...]string{"refused", "reset", "race", "cut", "wrong"}[k] }

// Patience is how long a client waits for the next byte of an answer.
const Patience = 2 * time.Minute

// again is how long a client waits after a failure.
const again = 20 * time.Millisecond

// Client is a client that keeps asking for the same path with GET.
type Client struct {
	Path string
	// Fresh has each request sent on a connection of its own. Otherwise the client stays on its connection until the server
	// closes it.
	Fresh bool
	// Rest is the time between an answer and the next request, on average. A client at rest sees when its connection is closed.
	Rest time.Duration
	// Blind is for how long the client does not look before it sends a request. What a client sees of a server is as old as a
	// round trip when its next request arrives, so this stands for the round trip of a network.
	Blind time.Duration
	// WebSocket has messages echoed on each connection, until the server closes it with a close frame.
	WebSocket bool
	// Streams is how many requests are under way at a time, over HTTP/2. 0 means HTTP/1.1. A client of HTTP/2 makes connections as
	// it needs them, and uses none of the fields above but Path.
	Streams int
}

// Failure is one that a client has seen.
type Failure struct {
	Kind   Kind
	Client Client
	Since  time.Time // when the client began to make the connection
	Err    error
}

// String returns the failure in one line.
func (f Failure) String() string {
	return fmt.Sprintf("%v: %s, fresh %v: %v", f.Kind, f.Client.Path, f.Client.Fresh, f.Err)
}

// Load is the load of some clients on one server, and the failures that they see. The zero Load with an Addr is ready
// for use.
type Load struct {
	Addr string      // "host:port"
	TLS  *tls.Config // nil: no TLS

	served, connections, atRest atomic.Int64

	mu       sync.Mutex
	failures []Failure
}

// Served returns how many requests and messages were answered.
func (l *Load) Served() int64 { return l.served.Load() }

// Connections returns how many connections of HTTP/1.1 were made.
func (l *Load) Connections() int64 { return l.connections.Load() }

// AtRest returns how many connections the server has closed while their clients were at rest, without an answer that said so.
func (l *Load) AtRest() int64 { return l.atRest.Load() }

// Failures returns all failures so far.
func (l *Load) Failures() []Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Failure(nil), l.failures...)
}

// Start starts clients. They go on until end is called, which waits for their last answers.
func (l *Load) Start(clients ...Client) (end func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() { l.keep(c, over) })
	}
	return func() {
		close(over)
		all.Wait()
	}
}

// keep makes one connection after the other.
func (l *Load) keep(c Client, over <-chan struct{}) {
	for !ended(over) {
		rest := time.Duration(0)
		if c.Fresh {
			rest = c.rest()
		}
		begun := time.Now()
		if f := l.connection(c, over); f != nil {
			f.Since = begun
			l.mu.Lock()
			l.failures = append(l.failures, *f)
			l.mu.Unlock()
			rest = max(rest, again)
		}
		pause(rest, over)
	}
}

// connection is one of c, to its end.
func (l *Load) connection(c Client, over <-chan struct{}) *Failure {
	if c.Streams > 0 {
		return l.streams(c, over)
	}
	conn, err := net.Dial("tcp", l.Addr)
	if err != nil {
		return &Failure{Kind: Refused, Client: c, Err: err}
	}
	defer conn.Close()
	l.connections.Add(1)
	if l.TLS != nil {
		conn = tls.Client(conn, l.TLS)
	}
	if c.WebSocket {
		return l.talk(c, conn, over)
	}
	return l.visit(c, conn, over)
}

// rest returns how long the client rests this time.
func (c Client) rest() time.Duration {
	if c.Rest == 0 {
		return 0
	}
	return c.Rest/2 + rand.N(c.Rest)
}

func ended(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// pause waits for d, or for the end.
func pause(d time.Duration, over <-chan struct{}) {
	if d == 0 {
		return
	}
	select {
	case <-over:
	case <-time.After(d):
	}
}
