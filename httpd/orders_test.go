package httpd_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// draining is the order of a server that is going to be replaced.
var draining = shutdown.Policy{Time: 30 * time.Second, Drop: true}

// obey requests a shutdown, and lets time pass until the scheduler has obeyed it.
func (d *driver) obey(o shutdown.Order, meanwhile func()) (cut error) {
	d.s.Shutdown(o)
	for turns := 0; turns < mostTurns; turns++ {
		n, err := d.s.Step(1)
		switch {
		case err != nil || d.s.Finished():
			return err
		case n > 0:
		case meanwhile != nil:
			meanwhile()
			meanwhile = nil
		default:
			next, ok := d.s.NextDeadline()
			require.True(d.t, ok, "nothing is due, and it has not ended")
			d.now = max(next, d.now+1)
		}
	}
	require.FailNow(d.t, "it does not end")
	return nil
}

// What a shutdown does: an idle connection is closed at once, and a new one in a second; one with a request is answered, and
// told that this was the last; one that takes too long is dropped.
func TestAnOrderToDrain(t *testing.T) {
	streamed := func(w *httpd.Response, _ *httpd.Request) act.Action {
		_ = w.Flush()
		return act.Seq(&listener.Sleep{For: time.Second}, filling(w, 5))
	}
	for name, row := range map[string]struct {
		handler   httpd.Handler
		says      string
		meanwhile string
		answers   string
		state     state
		within    time.Duration
	}{
		"new":                      {late, "", "", "", closed, time.Second},
		"new, and a request comes": {late, "", "GET /x HTTP/1.1\nHost: a\n\n" + behind, "404!", closed, 0},
		"idle":                     {late, "GET /x HTTP/1.1\nHost: a\n\n", "", "404", closed, 0},
		"in a head":                {late, "GET /x", " HTTP/1.1\nHost: a\n\n" + behind, "404!", closed, 0},
		"in a head for ever":       {late, "GET /x", "", "408!", closed, 10 * time.Second},
		"in a handler":             {late, "GET /1000 HTTP/1.1\nHost: a\n\n" + behind, "", "200!", closed, time.Second},
		"in a handler, for long":   {late, "GET /40000 HTTP/1.1\nHost: a\n\n", "", "", aborted, 30 * time.Second},
		"in an answer":             {streamed, get + "\n", "", "200", closed, time.Second},
		"in what is not wanted":    {func(*httpd.Response, *httpd.Request) act.Action { return nil }, post + "Content-Length: 5\n\nhel", "lo" + behind, "200 200!", closed, 0},
		"with an end, in a body":   {hurried, post + "Content-Length: 5\n\nhel", "", "408!", closed, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(raw(row.says))
			began := d.now
			cut := d.obey(draining, func() {
				if row.meanwhile == "EOF" {
					c.finish(io.EOF)
				} else if row.meanwhile != "" {
					c.feed(raw(row.meanwhile))
				}
			})
			require.Equal(t, row.state, c.state)
			all, err := understand(string(c.out), true)
			require.NoError(t, err)
			require.Equal(t, row.answers, statuses(all))
			require.LessOrEqual(t, d.now-began, row.within+10*time.Millisecond)
			if row.state == aborted {
				require.ErrorContains(t, cut, "dropped 1 task (httpd: GET /40000)")
			} else {
				require.NoError(t, cut)
				require.Equal(t, act.Done, c.verdict)
			}
		})
	}
}

// Connections at rest end evenly over the second half of the window of a shutdown. One on which a request comes before
// answers it, and says that it was the last.
func TestIdleConnectionsEndOverTheWindowOfAnOrder(t *testing.T) {
	d := newDriver(t)
	var all []*client
	for range 9 {
		all = append(all, d.dial(&httpd.Server{Handler: late}, listener.Limits{}).send(raw("GET /x HTTP/1.1\nHost: a\n\n")))
	}
	d.s.Shutdown(shutdown.Policy{Time: time.Minute, Spread: 8 * time.Second})
	asks := all[8]
	asks.received()
	require.Equal(t, "404!", statuses(asks.send(raw("GET /x HTTP/1.1\nHost: a\n\n")).check(t)))
	var ended []int
	for range 8 {
		d.pass(time.Second)
		n := 0
		for _, c := range all[:8] {
			if c.state == closed {
				n++
			}
		}
		ended = append(ended, n)
	}
	require.Equal(t, []int{0, 0, 0, 1, 3, 5, 7, 8}, ended)
}

// life is an action that notes what is said to it, and ends when it is told to.
type life struct {
	w     *httpd.Response
	notes *string
	told  bool
	over  bool
}

func (l *life) Act(t *act.Task) act.Directive {
	*l.notes += "a"
	if l.over || l.told {
		_, _ = l.w.WriteString("bye")
		return act.Done
	}
	t.Waker() // unused: it waits for a shutdown request
	return act.Wait
}

func (l *life) Stop(*act.Task, shutdown.Order) { *l.notes += "s"; l.told = true }
func (l *life) Close() error                   { *l.notes += "c"; return nil }

// The handler's action is told of shutdowns, and closed when it has finished or is dropped, once; even with
// WithBody, which for a time was in the way.
func TestTheHandlersActionGetsOrdersAndIsClosed(t *testing.T) {
	for end, want := range map[string]string{"over": "ac", "told": "asac", "dropped": "asc"} {
		for _, says := range [][]string{{get + "\n"}, {post + "Content-Length: 5\n\n", "hello"}} {
			notes := ""
			live := func(w *httpd.Response, r *httpd.Request, _ []byte) act.Action {
				return &life{w: w, notes: &notes, over: end == "over"}
			}
			web := &httpd.Server{Handler: httpd.WithBody(0, live)}
			if len(says) == 1 {
				web.Handler = func(w *httpd.Response, r *httpd.Request) act.Action { return live(w, r, nil) }
			}
			d := newDriver(t)
			c := d.dial(web, listener.Limits{})
			for _, s := range says {
				c.send(raw(s))
			}
			switch end {
			case "told":
				require.NoError(t, d.obey(draining, nil))
				require.Equal(t, "200!", statuses(c.check(t)))
			case "dropped":
				require.Error(t, d.obey(shutdown.Policy{Kind: shutdown.Halt, Drop: true}, nil))
				require.Equal(t, aborted, c.state)
			}
			require.Equal(t, want, notes, "%s, %q", end, says)
		}
	}
}

// An action that has finished was told for a time when a shutdown request came while its answer was on its way.
func TestAnActionThatHasFinishedGetsNoOrder(t *testing.T) {
	d := newDriver(t)
	notes := ""
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.SetBody(make([]byte, 1<<20))
		return stopper{&notes}
	}}
	c := d.dial(web, listener.Limits{})
	c.room = 1000
	c.send(raw(get + "\n"))
	require.NoError(t, d.obey(draining, func() { c.take(plenty) }))
	require.Empty(t, notes)
	require.Equal(t, closed, c.state)
}

// stopper is a Stopper and no more.
type stopper struct{ notes *string }

func (s stopper) Act(*act.Task) act.Directive    { return act.Done }
func (s stopper) Stop(*act.Task, shutdown.Order) { *s.notes += "s" }
