package httpd

import (
	"strings"
	"time"

	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/internal/hook"
)

// WaitsFor implements hook.Valued. What is awaited of the connection itself is the service's to say.
func (x *session) WaitsFor(w *hook.Waits) {
	switch x.phase {
	case fresh:
		x.add(w, "the first request", x.limit)
	case resting:
		x.add(w, "the next request", x.limit)
	case arriving:
		x.add(w, "the rest of a request's head", x.limit)
	case handling, away:
		c := &x.exchange.content
		if c.since != 0 {
			x.add(w, "more of the request's body", c.since+c.patience)
		}
		hook.AskValues(x.exchange.action, w)
	case sending:
		x.add(w, "the client to take the response", x.pace.cut())
	case draining:
		x.add(w, "the rest of a body that the handler has left", x.limit)
	case leaving, closing:
		x.add(w, "the client to take the last response", x.pace.cut())
	case switched:
		hook.AskValues(x.next.Action, w)
	}
}

// Redacted implements hook.Redacter: the name has the pattern that has matched, and nothing that the client has chosen.
func (x *session) Redacted() string {
	switch {
	case x.next != nil:
		if name, ok := hook.Redacted(x.next.Action); ok {
			return name
		}
		return x.next.String()
	case x.exchange == nil || !x.exchange.in.kept || len(x.exchange.in.Target()) == 0:
		return noRequest
	}
	in := &x.exchange.in
	method, path := string(in.Method()), in.Pattern()
	if i := strings.LastIndexAny(path, " \t"); i >= 0 {
		path = path[i+1:] // the pattern has the method
	} else if !standard(in.Method()) {
		method = "a method of its own"
	}
	return strings.TrimSuffix("httpd: "+method+" "+path, " ")
}

// add adds what, and how long is left until when.
func (x *session) add(w *hook.Waits, what string, when time.Duration) {
	if when <= 0 || when >= timeout.Never {
		w.Add(what)
	} else {
		w.AddTimed(what, max(0, when-x.conn.Scheduler().Now()))
	}
}

// counts are of the connections of a scheduler.
type counts struct {
	requests uint64    // whose heads have come
	answers  [6]uint64 // by the first digit of the status
}

var answersOf = [...]string{
	"http_responses_1xx_total", "http_responses_2xx_total", "http_responses_3xx_total", "http_responses_4xx_total",
	"http_responses_5xx_total",
}

// Counts implements hook.Counter.
func (c *cache) Counts(add func(name string, n uint64)) {
	add("http_requests_total", c.counts.requests)
	for i, n := range c.counts.answers[1:] {
		add(answersOf[i], n)
	}
}
