package httpd

import (
	"fmt"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/facts"
)

// The service reports the waits for the connection itself.
func (x *session) Describe(d *act.Description) {
	if d.Name = x.redacted(); x.phase == switched {
		x.next.Describe(d)
		return
	}
	switch x.phase {
	case fresh:
		x.timed(d, "the first request", x.limit)
	case resting:
		x.timed(d, "the next request", x.limit)
	case arriving:
		x.timed(d, "the rest of a request's head", x.limit)
	case handling, away:
		c := &x.exchange.content
		if c.since != 0 {
			x.timed(d, "more of the request's body", c.since+c.patience.left)
		}
		d.Of(x.exchange.action)
	case sending:
		x.timed(d, "the client to take the response", x.pace.cut())
	case draining:
		x.timed(d, "the rest of a body that the handler has left", x.limit)
	case leaving, closing:
		x.timed(d, "the client to take the last response", x.pace.cut())
	}
}

// redacted has the pattern that has matched, and nothing that the client has chosen.
func (x *session) redacted() string {
	switch {
	case x.next != nil:
		return x.next.String()
	case x.exchange == nil:
		return noRequest
	}
	return x.exchange.in.redacted()
}

func (r *Request) redacted() string {
	if !r.kept || len(r.Target()) == 0 {
		return noRequest
	}
	method, path := string(r.Method()), r.Pattern()
	if i := strings.LastIndexAny(path, " \t"); i >= 0 {
		path = path[i+1:] // the pattern has the method
	} else if !standard(r.Method()) {
		method = "a method of its own"
	}
	return strings.TrimSuffix("httpd: "+method+" "+path, " ")
}

// name has printable ASCII only, since it is for logs, and not the query, which may be private.
func (r *Request) name() string {
	if !r.kept || len(r.Target()) == 0 {
		return noRequest
	}
	path := r.Path()
	return fmt.Sprintf("httpd: %s %s", r.Method(), syntax.Escape(path[:min(len(path), mostNamed)]))
}

const noRequest = "httpd: no request"

// mostNamed bounds how much of a path is in a name.
const mostNamed = 200

// served is the action of a connection's task, which says who the client is. That of a service does.
type served interface {
	facts.Connected
	facts.Served
}

// ofStream says it for the tasks of streams.
type ofStream struct{ served }

// Service returns the kind of these tasks.
func (o ofStream) Service() string { return "streams of " + o.served.Service() }

// unserved is for a connection that belongs to no service.
type unserved struct{}

func (unserved) Service() string      { return "a connection" }
func (unserved) Peer() string         { return "" }
func (unserved) Descriptor() int      { return -1 }
func (unserved) Still() time.Duration { return -1 }
func (unserved) Undisturbed() bool    { return false }

// counts are of the connections of a scheduler.
type counts struct {
	requests uint64    // whose heads have come
	answers  [6]uint64 // by the first digit of the status
	http2    uint64    // connections
	floods   [len(floodCounters)]uint64
}

var answersOf = [...]string{
	"http_responses_1xx_total", "http_responses_2xx_total", "http_responses_3xx_total", "http_responses_4xx_total",
	"http_responses_5xx_total",
}

// Counts implements facts.Counter.
func (c *cache) Counts(add func(name string, n uint64)) {
	add("http_requests_total", c.counts.requests)
	for i, n := range c.counts.answers[1:] {
		add(answersOf[i], n)
	}
	add("http2_connections_total", c.counts.http2)
	for i, n := range c.counts.floods {
		add(floodCounters[i], n)
	}
}
