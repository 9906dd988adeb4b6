package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/stage"
)

const (
	pause = 500 * time.Millisecond // between two polls
	alive = 15 * time.Second       // without a change, after which a comment shows a proxy that the stream goes on
)

// events answers with a view each time that it has changed, until the client goes or the program ends
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (x *Jobs) events(w *httpd.Response, r *httpd.Request, values url.Values) act.Action {
	q, err := parse(values)
	if err != nil {
		return x.refuse(w, err)
	}
	w.Add("Content-Type", "text/event-stream")
	w.Add("X-Content-Type-Options", "nosniff")
	return &stream{of: x, q: q, w: w, r: r}
}

// stream is the action of events: it polls, writes and sleeps.
type stream struct {
	of    *Jobs
	q     query
	w     *httpd.Response
	r     *httpd.Request
	ask   *act.Call[[]byte] // nil: nothing is asked
	event []byte            // the latest
	rest  []byte            // of it, to be written
	wrote time.Duration     // when, by the scheduler's clock
	sleep act.Timer
}

func (x *stream) Act(t *act.Task) act.Directive {
	if x.r.Ended(t) || t.Order() != nil {
		return act.Done // the page connects again, to the program that takes over
	}
	for {
		for len(x.rest) > 0 {
			n, err := x.w.Write(x.rest)
			if x.rest = x.rest[n:]; err != nil {
				return listener.Next(t, err)
			}
			if err := x.w.Flush(); err != nil {
				return listener.Next(t, err)
			}
		}
		switch {
		case x.sleep.Armed():
			return act.Wait
		case x.ask == nil:
			x.ask = stage.NewCall(x.of.engine, x.look)
		}
		if d := x.ask.Act(t); d != act.Done {
			return d
		}
		now := t.Scheduler().Now()
		switch event := x.ask.Value; {
		case !bytes.Equal(event, x.event):
			x.event, x.rest, x.wrote = event, event, now
		case now-x.wrote >= alive:
			x.rest, x.wrote = []byte(":\n\n"), now
		}
		x.ask = nil
		t.WakeAfter(&x.sleep, pause)
	}
}

// look returns an event: the view, or why there is none.
func (x *stream) look(ctx context.Context) ([]byte, error) {
	data, err := x.of.board.look(ctx, x.q)
	if err != nil {
		text, _ := json.Marshal(err.Error()) // a string has a form in JSON
		return slices.Concat([]byte("event: outage\ndata: "), text, []byte("\n\n")), nil
	}
	return slices.Concat([]byte("data: "), data, []byte("\n")), nil
}

// Close ends the question.
func (x *stream) Close() error {
	x.sleep.Stop()
	if x.ask != nil {
		return x.ask.Close()
	}
	return nil
}
