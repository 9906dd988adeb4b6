package httpd

import (
	"fmt"
	"strings"
	"time"

	"github.com/daimon-go/daimon/internal/hook"
)

// Waits implements hook.Waiting. What is awaited of the connection itself is the service's to say.
func (x *session) Waits(add func(what string)) {
	switch x.phase {
	case awaiting:
		switch {
		case x.begun:
			add("the rest of a request's head" + x.left(x.limit))
		case x.served:
			add("the next request" + x.left(x.limit))
		default:
			add("the first request" + x.left(x.limit))
		}
	case handling:
		c := &x.exchange.content
		if c.since != 0 {
			add("more of the request's body" + x.left(c.since+c.patience))
		}
		hook.AskWaits(x.exchange.action, add)
	case sending:
		add("the client to take the response" + x.left(x.pace.until(x.server)))
	case draining:
		add("the rest of a body that the handler has left")
	case closing:
		add("the client to take the last response" + x.left(x.pace.until(x.server)))
	case switched:
		hook.AskWaits(x.next.Action, add)
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

// left says how long is left until when, in seconds.
func (x *session) left(when time.Duration) string {
	if when <= 0 || when >= never {
		return ""
	}
	return fmt.Sprintf(", for up to %v", max(0, when-x.conn.Scheduler().Now()).Round(time.Second))
}

// counts are of the connections of a scheduler.
type counts struct {
	requests uint64    // whose heads have come
	answers  [6]uint64 // by the first digit of the status
}

// Counts implements hook.Counter.
func (c *cache) Counts(add func(name string, n uint64)) {
	add("http_requests_total", c.counts.requests)
	for digit, n := range c.counts.answers[1:] {
		add(fmt.Sprintf("http_responses_%dxx_total", digit+1), n)
	}
}
