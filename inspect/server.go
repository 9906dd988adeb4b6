package inspect

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

const (
	viewers  = 64 // the most connections to the pages
	watchers = 48 // of which so many may stay: the others are for what is asked for once
)

// site serves the pages, on a scheduler of its own: if one of the server's is stuck, the pages show it. It ends when the
// server has ended.
type site struct {
	of    *Inspector
	log   *zap.Logger
	token []byte
	end   context.CancelFunc
	over  chan struct{}

	underway sync.WaitGroup // profiles that are taken
	watching atomic.Int64   // streams of events
}

// serve begins to serve the pages at x.Address.
func (x *Inspector) serve(log *zap.Logger) (*site, error) {
	host, _, err := net.SplitHostPort(x.Address)
	if err != nil {
		return nil, fmt.Errorf("inspect: the address %q: %w", x.Address, err)
	}
	if !loopback(host) && x.Token == "" {
		return nil, fmt.Errorf("inspect: %s can be reached from other machines: choose a token", x.Address)
	}
	token := x.Token
	if token == "" {
		token = rand.Text()
	}
	ctx, end := context.WithCancel(context.Background())
	v := &site{of: x, log: log, token: []byte(token), end: end, over: make(chan struct{})}
	web := &httpd.Server{Handler: v.routes()}
	tcp := &x.tcp
	tcp.Address, tcp.Handler, tcp.MaxConns = x.Address, web.Serve, viewers
	listening := make(chan error, 2)
	cfg := act.Config{
		Schedulers: 1, Logger: log,
		Shutdown: shutdown.Policy{Kind: shutdown.Halt, Drop: true},
	}
	go func() {
		defer close(v.over)
		pprof.SetGoroutineLabels(ctx) // without those of the scheduler that is being set up
		err := act.Run(ctx, cfg, tcp.Setup, func(*act.Scheduler) error {
			listening <- nil
			return nil
		})
		if _, cut := errors.AsType[*shutdown.Cut](err); err != nil && !cut {
			listening <- fmt.Errorf("inspect: %w", err)
		}
	}()
	if err := <-listening; err != nil {
		end()
		return nil, err
	}
	where := url.URL{Scheme: "http", Host: tcp.Addr().String(), Path: "/", RawQuery: "token=" + url.QueryEscape(token)}
	log.Info("inspect at " + where.String())
	return v, nil
}

// loopback reports whether host names this machine and no other can reach it.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (v *site) close() {
	v.end()
	<-v.over
	v.underway.Wait()
}

//go:embed page
var embedded embed.FS

// policy lets the page load and do only what is its own: no script or style in the text, nothing from elsewhere, and no
// other page around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (v *site) routes() httpd.Handler {
	root, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err)
	}
	page := &files.Server{FS: root}
	var site httpd.Mux
	site.Handle("GET /{path...}", func(w *httpd.Response, r *httpd.Request) act.Action { // what everybody may know
		w.Add("Content-Security-Policy", policy)
		return page.Serve(w, r)
	})
	secret := func(path string, h httpd.Handler) {
		site.Handle("GET "+path, func(w *httpd.Response, r *httpd.Request) act.Action {
			if !v.allowed(r) {
				return refuse(w, 401, "The token is missing or wrong. The server has logged it when it started.\n")
			}
			w.Add("Cache-Control", "no-store")
			w.Add("X-Content-Type-Options", "nosniff")
			return h(w, r)
		})
	}
	secret("/events", v.events)
	secret("/text", v.text)
	secret("/tasks", v.report(plainText, func(find string, out *bytes.Buffer) { v.of.Report(true).writeTasks(out, find) }))
	secret("/metrics", v.report("text/plain; version=0.0.4; charset=utf-8",
		func(_ string, out *bytes.Buffer) {
			v.of.Report(false).writeMetrics(out)
			v.of.writeCollected(out, v.log)
		}))
	secret("/json", v.report("application/json", func(_ string, out *bytes.Buffer) { encode(out, v.of.report(false, true)) }))
	secret("/tasks.json", v.report("application/json",
		func(find string, out *bytes.Buffer) { encode(out, v.of.Report(true).listing(find)) }))
	secret("/last", v.last)
	secret("/debug/pprof/{$}", profileList)
	secret("/debug/pprof/{name}", v.profile)
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		// A page of another site could give its name this address (DNS rebinding), and then read what is here.
		if !fixed(string(r.Host())) {
			return refuse(w, 421, "The host has to be an address, or localhost.\n")
		}
		if _, err := url.ParseQuery(string(r.Query())); err != nil {
			return refuse(w, 400, "The query has a mistake.\n")
		}
		w.Add("Referrer-Policy", "no-referrer")
		return site.Serve(w, r)
	}
}

// allowed reports whether r brings the token.
func (v *site) allowed(r *httpd.Request) bool {
	scheme, token, found := bytes.Cut(r.Header("Authorization"), []byte(" "))
	if !found || !bytes.EqualFold(scheme, []byte("Bearer")) { // RFC 9110, 11.1
		token = []byte(parameter(r, "token"))
	}
	return subtle.ConstantTimeCompare(token, v.token) == 1
}

// parameter returns a part of the query, which has no mistake.
func parameter(r *httpd.Request, name string) string {
	query, _ := url.ParseQuery(string(r.Query()))
	return query.Get(name)
}

// fixed reports whether the host of a request, which may have a port, is no name that somebody else could give an address.
func fixed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

func refuse(w *httpd.Response, code int, why string) act.Action {
	w.SetStatus(code)
	w.Add("Content-Type", plainText)
	_, _ = w.WriteString(why)
	return nil
}

func encode(out *bytes.Buffer, v any) {
	if err := json.NewEncoder(out).Encode(v); err != nil {
		panic(err) // there is nothing in it that has no form in JSON
	}
}

// report answers with what write writes of a Report. It is asked for and written elsewhere: the schedulers have their time to
// answer, and the text may be long.
func (v *site) report(kind string, write func(find string, out *bytes.Buffer)) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		find := parameter(r, "find")
		return answer(w, kind, func() ([]byte, error) {
			var out bytes.Buffer
			write(find, &out)
			return valid(&out), nil
		})
	}
}

const textDefault, textMost = 1, 60 // seconds

// text answers with two Reports, and so with what has happened between them. With ?seconds=0 it has one, of all since the start.
func (v *site) text(w *httpd.Response, r *httpd.Request) act.Action {
	n := textDefault
	if seconds := parameter(r, "seconds"); seconds != "" {
		var err error
		if n, err = strconv.Atoi(seconds); err != nil || n < 0 || n > textMost {
			return refuse(w, 400, fmt.Sprintf("The seconds have to be a number from 0 to %d.\n", textMost))
		}
	}
	return v.taking(w, r, plainText, func(gone <-chan struct{}) ([]byte, error) {
		var before *Report
		if n > 0 {
			before = v.of.Report(true)
			waitFor(time.Duration(n)*time.Second, gone)
		}
		var out bytes.Buffer
		v.of.Report(true).withoutTasks().writeText(&out, before)
		return valid(&out), nil
	})
}

// answer has f called elsewhere, and answers with what it returns.
func answer(w *httpd.Response, kind string, f func() ([]byte, error)) act.Action {
	ask := &act.Call[[]byte]{F: f}
	w.Add("Content-Type", kind)
	return act.Seq(ask, act.Func(func(*act.Task) act.Directive {
		w.SetBody(ask.Value)
		return act.Done
	}))
}

// last answers with the last events of all schedulers, or of one.
func (v *site) last(w *httpd.Response, r *httpd.Request) act.Action {
	index := -1
	if text := parameter(r, "scheduler"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= int(v.of.schedulers.Load()) { // without the lock, which a census has for long
			return refuse(w, 404, "There is no scheduler "+strconv.Quote(text)+".\n")
		}
		index = n
	}
	return answer(w, plainText, func() ([]byte, error) {
		var out bytes.Buffer
		v.of.writeLast(&out, index, nil)
		return valid(&out), nil
	})
}

// valid returns the bytes of a text as UTF-8, for Prometheus drops a page that is not: what an action or a peer says of itself may
// have others.
func valid(text *bytes.Buffer) []byte { return bytes.ToValidUTF8(text.Bytes(), []byte("\uFFFD")) }

const plainText = "text/plain; charset=utf-8"

// events answers with a Report each second, until the client goes (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (v *site) events(w *httpd.Response, r *httpd.Request) act.Action {
	if v.watching.Add(1) > watchers {
		v.watching.Add(-1)
		return refuse(w, 503, "Too many pages are open.\n")
	}
	w.Add("Content-Type", "text/event-stream")
	return &stream{site: v, w: w, r: r}
}

// stream is the action of events: it asks, writes, and sleeps.
type stream struct {
	site  *site
	w     *httpd.Response
	r     *httpd.Request
	ask   *act.Call[[]byte] // nil: nothing is asked
	rest  []byte            // to be written
	sleep act.Timer
}

func (x *stream) Act(t *act.Task) act.Directive {
	if x.r.Ended(t) {
		return act.Done
	}
	for {
		for len(x.rest) > 0 {
			n, err := x.w.Write(x.rest)
			if x.rest = x.rest[n:]; err != nil {
				return listener.Next(t, err)
			}
		}
		switch {
		case x.sleep.Armed():
			return act.Wait
		case x.ask == nil:
			x.ask = &act.Call[[]byte]{F: x.event}
		}
		if d := x.ask.Act(t); d != act.Done {
			return d
		}
		x.rest, x.ask = x.ask.Value, nil
		t.WakeAfter(&x.sleep, fresh)
	}
}

func (x *stream) event() ([]byte, error) {
	out := bytes.NewBufferString("data: ")
	encode(out, x.site.of.report(false, true)) // its line ends with a line feed
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Close makes room for another one, and ends the question.
func (x *stream) Close() error {
	x.site.watching.Add(-1)
	if x.ask != nil {
		return x.ask.Close()
	}
	return nil
}
