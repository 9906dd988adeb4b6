package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
)

// site has requests that take their time, to see how they fare when the server ends or is replaced. The zero site has no text.
type site struct {
	text atomic.Pointer[[]byte] // replaced as a whole, since all schedulers read it
}

// read reads the text, at most 32 KiB of it, from a file. After an error the site keeps the text that it had. Any goroutine.
func (x *site) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 32<<10))
	if err != nil {
		return err
	}
	x.text.Store(&text)
	return nil
}

// routes returns the routes.
//
//	/         at once: the number of the process, and the text
//	/slow     the same, after ?for=1s
//	/stream   a line each 50 ms, ?lines=20 of them
//	/large    ?mib=16 of zeros, for a client that does not read
//	/ws       an echo of WebSocket
//	/healthz  200 as long as the scheduler gives turns
//	/readyz   200, or 503 while a shutdown is announced
func (x *site) routes() *httpd.Mux {
	all := health()
	all.Handle("GET /{$}", x.short)
	all.Handle("GET /slow", x.slow)
	all.Handle("GET /stream", stream)
	all.Handle("GET /large", large)
	sockets := &websocket.Server{Handler: echo}
	all.Handle("/ws", sockets.Serve)
	return all
}

// health returns the routes that a load balancer asks for.
func health() *httpd.Mux {
	site := &httpd.Mux{}
	site.Handle("GET /healthz", httpd.Healthy)
	site.Handle("GET /readyz", httpd.Ready)
	return site
}

var plain = httpd.NewField("Content-Type", "text/plain; charset=utf-8")

func (x *site) short(w *httpd.Response, _ *httpd.Request) act.Action {
	w.AddField(plain)
	fmt.Fprintf(w, "process %d\n", os.Getpid())
	if text := x.text.Load(); text != nil {
		_, _ = w.Write(*text)
	}
	return nil
}

func (x *site) slow(w *httpd.Response, r *httpd.Request) act.Action {
	long, err := time.ParseDuration(parameter(r, "for", "1s"))
	if err != nil {
		w.StatusOnly(400)
		return nil
	}
	return act.Seq(&listener.Sleep{For: long}, act.Func(func(*act.Task) act.Directive {
		x.short(w, r)
		return act.Done
	}))
}

const pace = 50 * time.Millisecond

// lines is the action of a stream.
type lines struct {
	w          *httpd.Response
	sent, last int
	timer      act.Timer
}

func stream(w *httpd.Response, r *httpd.Request) act.Action {
	n, err := strconv.Atoi(parameter(r, "lines", "20"))
	if err != nil {
		w.StatusOnly(400)
		return nil
	}
	w.AddField(plain)
	return &lines{w: w, last: n}
}

// Act writes a line, and waits for the time of the next.
func (x *lines) Act(t *act.Task) act.Directive {
	if x.timer.Armed() {
		return act.Wait
	}
	if x.sent == x.last {
		return act.Done
	}
	x.sent++
	fmt.Fprintf(x.w, "line %d of %d, process %d\n", x.sent, x.last, os.Getpid())
	if err := x.w.Flush(); err != nil {
		return listener.Next(t, err)
	}
	t.WakeAfter(&x.timer, pace)
	return act.Wait
}

// Close stops the timer.
func (x *lines) Close() error {
	x.timer.Stop()
	return nil
}

// large is not at hand as a whole: it is written as there is room.
func large(w *httpd.Response, r *httpd.Request) act.Action {
	n, err := strconv.Atoi(parameter(r, "mib", "16"))
	if err != nil || n < 0 || n > 1<<20 {
		w.StatusOnly(400)
		return nil
	}
	var zeros [16 << 10]byte
	left := n << 20
	return act.Func(func(t *act.Task) act.Directive {
		for left > 0 {
			n, err := w.Write(zeros[:min(left, len(zeros))])
			if left -= n; err != nil {
				return listener.Next(t, err)
			}
		}
		return act.Done
	})
}

func parameter(r *httpd.Request, name, or string) string {
	query, err := url.ParseQuery(string(r.Query()))
	if err != nil || !query.Has(name) {
		return or
	}
	return query.Get(name)
}

// echo sends each message back.
func echo(c *websocket.Conn, _ *httpd.Request) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		for {
			m, err := c.Receive()
			if err == nil {
				err = c.Send(m.Type, m.Data)
			}
			if err != nil {
				return c.Next(t, err)
			}
		}
	})
}
