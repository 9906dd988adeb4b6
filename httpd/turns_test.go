package httpd_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// A request belongs to the handler until it has answered. All of it is there in each turn, although the memory that was
// lent in the first turn has been used again.
func TestARequestIsThereInEachTurn(t *testing.T) {
	for _, says := range []string{
		"GET /a/b%20c?d HTTP/1.1\nHost: b:80\nX: y\nX: z\n\n",
		"GET http://c/a/e HTTP/1.1\nHost: b\nX: y\n\n",
		"POST /a/ HTTP/1.0\nContent-Length: 5\nConnection: keep-alive\n\nhello",
		"POST /a/f?d HTTP/1.1\nHost:\nTransfer-Encoding: chunked\n\n5\nhello\n0\nSum: 1\n\n",
	} {
		var seen []string
		see := func(r *httpd.Request) {
			k := &recorder{}
			seen = append(seen, fmt.Sprintf("%s %s %q %s %v", k.entry(r), r.Pattern(), r.Value("name"), r.Header("x"), r.RemoteAddr()))
		}
		var site httpd.Mux
		site.Handle("/a/{name...}", func(w *httpd.Response, r *httpd.Request) act.Action {
			see(r)
			look := act.Func(func(*act.Task) act.Directive { see(r); return act.Done })
			return act.Seq(look, &listener.Sleep{For: time.Second}, look, act.Func(func(t *act.Task) act.Directive {
				in, err := r.Body.Peek()
				if err == io.EOF {
					return act.Done
				}
				r.Body.Discard(len(in))
				return listener.Next(t, err)
			}), look, &listener.Sleep{For: time.Second}, look, act.Func(func(*act.Task) act.Directive {
				_, _ = w.Write(r.Body.Trailer("sum"))
				return act.Done
			}))
		})
		d := newDriver(t)
		for _, pieces := range [][]string{{raw(says)}, cut(raw(says), nil)} {
			seen = nil
			c := d.dial(&httpd.Server{Handler: site.Serve}, listener.Limits{}).send(pieces...)
			other := d.dial(&httpd.Server{Handler: hello}, listener.Limits{})
			for range 3 {
				other.send(raw("GET /somebody/else HTTP/1.1\nHost: somebody\nX: else\n\n"))
				d.pass(time.Second)
			}
			require.Len(t, seen, 5, says)
			for _, s := range seen {
				require.Equal(t, seen[0], s)
			}
			all, err := understand(string(c.out), false, asked{old: seen[0][0] == 'P' && says[9] == 'H'})
			require.NoError(t, err)
			require.Equal(t, "200", statuses(all))
			require.Equal(t, strings.Count(says, "Sum"), len(all[0].body), "the trailer")
		}
	}
}

// A handler that appends to bytes that it was lent does not overwrite what lies behind them: the rest of the target, and of
// a body the next request.
func TestAppendingToLentBytesCopiesThem(t *testing.T) {
	spoil := func(p []byte) { _ = append(p, '#') }
	k := &recorder{}
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		for _, p := range [][]byte{r.Host(), r.Method(), r.Target(), r.Path(), r.Query(), r.Header("X")} {
			spoil(p)
		}
		in, _ := r.Body.Peek()
		spoil(in)
		return k.serve(w, r)
	}}
	d := newDriver(t)
	says := "POST http://a/b?c HTTP/1.1\nHost: a\nX: y\n"
	c := d.dial(web, listener.Limits{}).send(raw(says + "Content-Length: 5\n\nhello" + says + "Transfer-Encoding: chunked\n\n5\nhello\n0\n\n" + get + "\n"))
	require.Equal(t, "200 200 200", statuses(c.check(t)), k)
	require.Equal(t, `POST http://a/b?c path=/b?c X=y "hello"; POST http://a/b?c path=/b?c X=y "hello"; GET /`, k.String())
}

// What a body costs is in proportion to what has come of it, not to what was announced.
func TestABodyThatIsOnlyAnnouncedCostsNoMemory(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{Handler: httpd.WithBody(64<<20, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil })}
	before := heap()
	var all []*client
	for range 10 {
		all = append(all, d.dial(web, listener.Limits{}).send(raw(post+"Content-Length: 60000000\n\nx")))
	}
	require.Less(t, int64(heap()-before), int64(10<<20))
	require.Equal(t, open, all[0].state)
}

// What is kept for the next requests does not grow with how many there were at a time, nor with how large they were.
func TestWhatIsKeptForTheNextRequestsIsBounded(t *testing.T) {
	d := newDriver(t)
	large := make([]byte, 100<<10)
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		_, _ = w.Write(large)
		return nil
	}}
	before := heap()
	for _, says := range []string{"G", get + "\n"} {
		many := 1000
		if says != "G" {
			many = 64
		}
		var all []*client
		for range many {
			c := d.dial(web, listener.Limits{})
			c.room = 0
			all = append(all, c.send(raw(says)))
		}
		for _, c := range all {
			c.endInput().take(plenty)
			d.settle()
			require.Equal(t, closed, c.state)
		}
	}
	require.Less(t, int64(heap()-before), int64(1<<20))
	d.dial(web, listener.Limits{}) // they belong to the scheduler, which is still there
}
