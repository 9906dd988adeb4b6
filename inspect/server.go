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
	"math"
	"net"
	"net/netip"
	"net/url"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/shutdown"
)

// viewers is the most connections to the pages.
const viewers = 64

// site serves the pages, on a scheduler of its own: if one of the server's is stuck, the pages show it. It ends when the
// server has ended.
type site struct {
	of    *Inspector
	log   *zap.Logger
	token []byte
	end   context.CancelFunc
	over  chan struct{}

	underway sync.WaitGroup // requests whose answers are written

	mu     sync.Mutex
	before *report // the latest at /json, nil if there was none
	shown  []byte  // what /json had to say
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
		pprof.SetGoroutineLabels(ctx) // without the labels of the scheduler that is being set up
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
	where := url.URL{Scheme: "http", Host: tcp.Addr().String(), Path: "/"}
	if x.Token == "" {
		where.RawQuery = "token=" + token // that of a program is a secret, which logs do not keep
	}
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
	site.Handle("GET /{path...}", func(w *httpd.Response, r *httpd.Request) act.Action { // public files
		w.Add("Content-Security-Policy", policy)
		return page.Serve(w, r)
	})
	secret := func(path string, h httpd.Handler) {
		site.Handle("GET "+path, func(w *httpd.Response, r *httpd.Request) act.Action {
			if !v.allowed(r) {
				return refuse(w, 401, "The token is missing or wrong. A server without -inspect-token has logged it when it started.\n")
			}
			w.Add("Cache-Control", "no-store")
			w.Add("X-Content-Type-Options", "nosniff")
			return h(w, r)
		})
	}
	secret("/text", v.answer(plainText, v.text))
	secret("/tasks", v.answer(plainText, v.tasks))
	secret("/last", v.answer(plainText, v.last))
	secret("/metrics", v.answer("text/plain; version=0.0.4; charset=utf-8", v.metrics))
	secret("/json", v.answer("application/json", v.json))
	secret("/tasks.json", v.answer("application/json", func(q *request) error {
		return json.NewEncoder(q).Encode(v.of.report(true, false).listing(q.Get("find"), listed))
	}))
	secret("/debug/pprof/{$}", v.answer(plainText, profileList))
	secret("/debug/pprof/{name}", v.answer("application/octet-stream", profile))
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		// A page of another site could give its name this address (DNS rebinding), and then read the pages.
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
		query, _ := url.ParseQuery(string(r.Query())) // it has no mistake
		token = []byte(query.Get("token"))
	}
	return subtle.ConstantTimeCompare(token, v.token) == 1
}

// fixed reports whether the host of a request, which may have a port, is an address or localhost: not a name for which
// somebody else could choose the address.
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

const plainText = "text/plain; charset=utf-8"

// request has the data of a page, and the content of the answer.
type request struct {
	url.Values // of the query
	bytes.Buffer
	name string          // in the path
	kind string          // of the content
	gone <-chan struct{} // closed when nobody waits any more
}

// seconds returns the duration that is asked for, which has bounds.
func (q *request) seconds(otherwise, least, most int) (time.Duration, error) {
	n := otherwise
	if text := q.Get("seconds"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < least || n > most {
			return 0, refusal{400, fmt.Sprintf("The seconds have to be a number from %d to %d.", least, most)}
		}
	}
	return time.Duration(n) * time.Second, nil
}

// refusal is the error of a request that gets no page. Other errors have the code 503.
type refusal struct {
	code int
	why  string
}

func (r refusal) Error() string { return r.why }

// answer returns a handler that answers with the output of write.
func (v *site) answer(kind string, write func(*request) error) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		gone := make(chan struct{})
		q := &request{name: string(r.Value("name")), kind: kind, gone: gone}
		q.Values, _ = url.ParseQuery(string(r.Query())) // it has no mistake
		return &answer{site: v, w: w, r: r, request: q, write: write, gone: gone}
	}
}

// answer is the action of a request. What it answers with is written on another goroutine, and may take long: the schedulers have
// their time to answer, and the text may be long.
type answer struct {
	act.Call[error]
	site    *site
	w       *httpd.Response
	r       *httpd.Request
	request *request
	write   func(*request) error
	gone    chan<- struct{}
}

func (x *answer) Act(t *act.Task) act.Directive {
	if x.r.Ended(t) {
		return act.Done
	}
	if x.F == nil {
		x.site.underway.Add(1)
		x.F = func() (error, error) {
			defer x.site.underway.Done()
			return x.write(x.request), nil
		}
	}
	if d := x.Call.Act(t); d != act.Done {
		return d
	}
	if err := x.Value; err != nil {
		code := 503
		if r, ok := errors.AsType[refusal](err); ok {
			code = r.code
		}
		refuse(x.w, code, err.Error()+"\n")
		return act.Done
	}
	content := x.request.Bytes()
	if strings.HasPrefix(x.request.kind, "text/") {
		content = valid(content)
	}
	x.w.Add("Content-Type", x.request.kind)
	x.w.SetBody(content)
	return act.Done
}

// Close ends a long answer.
func (x *answer) Close() error {
	close(x.gone)
	return x.Call.Close()
}

const textDefault, textMost = 1, 60 // seconds

// text is of two reports, and so of what has happened between them. With ?seconds=0 it is of one, of all since the start.
func (v *site) text(q *request) error {
	long, err := q.seconds(textDefault, 0, textMost)
	if err != nil {
		return err
	}
	var before *report
	if long > 0 {
		before = v.of.report(true, false)
		waitFor(long, q.gone)
	}
	v.of.report(true, false).page(before).writeTo(q)
	return nil
}

func (v *site) tasks(q *request) error {
	v.of.report(true, false).listing(q.Get("find"), math.MaxInt).writeTo(q)
	return nil
}

func (v *site) metrics(q *request) error {
	m := newMetrics()
	v.of.report(false, false).metrics(m)
	v.of.collect(m, v.log)
	m.write(q)
	return nil
}

// last writes the last events of all schedulers, or of one.
func (v *site) last(q *request) error {
	desks, clock := v.of.inspected()
	if text := q.Get("scheduler"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(desks) {
			return refusal{404, "There is no scheduler " + strconv.Quote(text) + "."}
		}
		desks = desks[n : n+1]
	}
	writeLast(q, desks, clock, nil)
	return nil
}

// json writes the Report, and what the page shows of it, with the rates since the Report before. All viewers get the same.
func (v *site) json(q *request) error {
	r := v.of.report(false, true)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.before == nil || !v.before.Time.Equal(r.Time) {
		p := r.page(v.before)
		text, err := json.Marshal(struct {
			*report
			Title  string   `json:"title"`
			Tables []*table `json:"tables"`
		}{r, p.Title, p.Tables})
		if err != nil {
			return err
		}
		v.before, v.shown = r, append(text, '\n')
	}
	_, err := q.Write(v.shown)
	return err
}
