package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

//go:embed page
var embedded embed.FS

// policy lets the page load and do only what is its own: no script or style in the text, nothing from elsewhere, and no
// other page around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Site is the handler of the web server.
//
//	GET  /                                  the page
//	GET  /events?kind=&state=&before=       a view each time that it has changed, as server-sent events
//	GET  /api/tasks?kind=&state=&before=    a view: counts, running tasks, and the newest tasks
//	GET  /api/tasks/ID                      a task, and the errors of its attempts
//	GET  /api/token                         what requests that change something send as X-Jobs-Token
//	POST /api/tasks?kind=&n=&after=&key=    adds tasks
//	POST /api/tasks/ID/suspend              also /resume, /retry and /cancel
//	POST /api/kinds/KIND/pause              also /resume
//
// An answer is JSON. That of an error has its text as "error". A request with another parameter, or with a body, is an error: it
// may mean something that this program does not do.
func (x *Jobs) Site() httpd.Handler {
	root, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err)
	}
	page := &files.Server{FS: root}
	site := &httpd.Mux{}
	site.Handle("GET /{path...}", func(w *httpd.Response, r *httpd.Request) act.Action {
		w.Add("Content-Security-Policy", policy)
		w.Add("Cache-Control", "max-age=60") // browsers ask for the icon each time the address changes
		return page.Serve(w, r)
	})
	site.Handle("GET /events", x.takes(x.events, "kind", "state", "before"))
	site.Handle("GET /api/token", x.takes(func(w *httpd.Response, _ *httpd.Request, _ url.Values) act.Action {
		w.Add("X-Content-Type-Options", "nosniff")
		_, _ = w.WriteString(x.token)
		return nil
	}))
	site.Handle("GET /api/tasks", x.takes(x.view, "kind", "state", "before"))
	site.Handle("GET /api/tasks/{id}", x.takes(x.task))
	site.Handle("POST /api/tasks", x.change(x.takes(x.add, "kind", "n", "after", "key")))
	site.Handle("POST /api/tasks/{id}/{what}", x.change(x.takes(x.request)))
	site.Handle("POST /api/kinds/{kind}/{what}", x.change(x.takes(x.pause)))
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		if !x.known(string(r.Host())) {
			return x.refuse(w, errHost)
		}
		w.Add("Referrer-Policy", "no-referrer")
		return site.Serve(w, r)
	}
}

// Errors that have a status of their own.
var (
	errHost    = errors.New("jobs: unknown host: use an address, localhost, or a name that -host has")
	errForeign = errors.New("jobs: the request comes from another site, or without the token of /api/token")
)

// known reports whether the host of a request, which may have a port, is an address, localhost, or a name of ours: a page of
// another site could give its own name this address (DNS rebinding), and then read this site.
func (x *Jobs) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(x.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// change lets h answer requests of our own page, and of programs. A browser says of a request which site has made it, and lets
// no other site read the token. The scheme of an Origin is not compared: a proxy in front of this server may add TLS.
func (x *Jobs) change(h httpd.Handler) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		site, origin := string(r.Header("Sec-Fetch-Site")), string(r.Header("Origin"))
		_, from, _ := strings.Cut(origin, "://")
		if (site != "" && site != "same-origin") || (origin != "" && from != string(r.Host())) ||
			subtle.ConstantTimeCompare(r.Header("X-Jobs-Token"), []byte(x.token)) != 1 {
			return x.refuse(w, errForeign)
		}
		return h(w, r)
	}
}

// takes lets h answer requests that have these parameters, each of them once at most, and nothing else.
func (x *Jobs) takes(h func(*httpd.Response, *httpd.Request, url.Values) act.Action, names ...string) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		values, err := parameters(r, names)
		if err != nil {
			return x.refuse(w, err)
		}
		return h(w, r, values)
	}
}

func parameters(r *httpd.Request, names []string) (url.Values, error) {
	values, err := url.ParseQuery(string(r.Query()))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the query has a mistake", errAsked)
	case r.Body.Length() != 0:
		return nil, fmt.Errorf("%w: parameters belong in the query, and not in a body", errAsked)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch n := len(values[name]); {
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("%w: there is no parameter %q here", errAsked, name)
		case n > 1:
			return nil, fmt.Errorf("%w: the parameter %q comes %d times", errAsked, name, n)
		}
	}
	return values, nil
}

func (x *Jobs) view(w *httpd.Response, _ *httpd.Request, values url.Values) act.Action {
	q, err := parse(values)
	if err != nil {
		return x.refuse(w, err)
	}
	return x.answer(w, func(ctx context.Context) (any, error) {
		data, err := x.board.look(ctx, q)
		return json.RawMessage(data), err
	})
}

// opened is a task with all that is known of it.
type opened struct {
	row
	Data     string    `json:"data"`
	Created  time.Time `json:"created"`
	Worker   string    `json:"worker,omitempty"`
	Failures []failure `json:"failures"`
}

type failure struct {
	Stage   string    `json:"stage"`
	Attempt int       `json:"attempt"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"` // of a panic also the stack, after an empty line
}

func (x *Jobs) task(w *httpd.Response, r *httpd.Request, _ url.Values) act.Action {
	id, err := number(r)
	if err != nil {
		return x.refuse(w, err)
	}
	return x.answer(w, func(ctx context.Context) (any, error) {
		t, err := x.engine.Store().Get(ctx, id)
		if err != nil {
			return nil, err
		}
		failures, err := x.engine.Store().Failures(ctx, id)
		if err != nil {
			return nil, err
		}
		o := opened{row: rowOf(t), Data: string(t.Data), Created: t.Created, Worker: t.Worker, Failures: []failure{}}
		for _, f := range failures {
			o.Failures = append(o.Failures, failure{f.Stage, f.Attempt, f.Time, f.Text})
		}
		return o, nil
	})
}

func number(r *httpd.Request) (store.ID, error) {
	text := string(r.Value("id"))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not the number of a task", errAsked, text)
	}
	return store.ID(n), nil
}

func (x *Jobs) add(w *httpd.Response, _ *httpd.Request, values url.Values) act.Action {
	n, after := 1, time.Duration(0)
	var err error
	if text := values.Get("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil {
			return x.refuse(w, fmt.Errorf("%w: %q is not a number of tasks", errAsked, text))
		}
	}
	if text := values.Get("after"); text != "" {
		if after, err = time.ParseDuration(text); err != nil {
			return x.refuse(w, fmt.Errorf("%w: %q is not a duration, such as 10s", errAsked, text))
		}
	}
	return x.answer(w, func(ctx context.Context) (any, error) {
		ids, err := x.create(ctx, values.Get("kind"), n, after, values.Get("key"))
		return map[string][]store.ID{"ids": ids}, err
	})
}

// request asks for something of a task. The answer says whether that has changed anything.
func (x *Jobs) request(w *httpd.Response, r *httpd.Request, _ url.Values) act.Action {
	id, err := number(r)
	f := map[string]func(context.Context, store.ID) (bool, error){
		"suspend": x.engine.Suspend, "resume": x.engine.Resume, "retry": x.engine.Retry, "cancel": x.engine.Cancel,
	}[string(r.Value("what"))]
	switch {
	case err != nil:
		return x.refuse(w, err)
	case f == nil:
		return x.refuse(w, errPath)
	}
	return x.changed(w, func(ctx context.Context) (bool, error) { return f(ctx, id) })
}

func (x *Jobs) pause(w *httpd.Response, r *httpd.Request, _ url.Values) act.Action {
	kind := string(r.Value("kind"))
	f := map[string]func(context.Context, string) (bool, error){
		"pause": x.engine.PauseKind, "resume": x.engine.ResumeKind,
	}[string(r.Value("what"))]
	if f == nil {
		return x.refuse(w, errPath)
	}
	return x.changed(w, func(ctx context.Context) (bool, error) { return f(ctx, kind) })
}

var errPath = errors.New("jobs: nothing of that name can be asked for")

func (x *Jobs) changed(w *httpd.Response, f func(context.Context) (bool, error)) act.Action {
	return x.answer(w, func(ctx context.Context) (any, error) {
		ok, err := f(ctx)
		return map[string]bool{"changed": ok}, err
	})
}

// answer answers with what f returns, as JSON. It is called off the scheduler's thread.
func (x *Jobs) answer(w *httpd.Response, f func(context.Context) (any, error)) act.Action {
	type result struct {
		value any
		err   error
	}
	call := stage.NewCall(x.engine, func(ctx context.Context) (result, error) {
		value, err := f(ctx)
		return result{value, err}, nil
	})
	return act.Seq(call, act.Func(func(*act.Task) act.Directive {
		if err := call.Value.err; err != nil {
			x.refuse(w, err)
			return act.Done
		}
		x.write(w, call.Value.value)
		return act.Done
	}))
}

// refuse answers with an error, and a status that says whose it is.
func (x *Jobs) refuse(w *httpd.Response, err error) act.Action {
	switch {
	case errors.Is(err, errHost):
		w.SetStatus(421)
	case errors.Is(err, errForeign):
		w.SetStatus(403)
	case errors.Is(err, errAsked):
		w.SetStatus(400)
	case errors.Is(err, store.ErrNotFound), errors.Is(err, stage.ErrUnknownKind), errors.Is(err, errPath):
		w.SetStatus(404)
	default:
		w.SetStatus(503)
		x.Logger.Error("a request is not answered", zap.Error(err))
	}
	x.write(w, map[string]string{"error": err.Error()})
	return nil
}

func (x *Jobs) write(w *httpd.Response, v any) {
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		panic(err) // all that is written has a form in JSON
	}
	w.Add("Content-Type", "application/json")
	w.Add("Cache-Control", "no-store")
	w.Add("X-Content-Type-Options", "nosniff") // as files.Server has it
	w.SetBody(out.Bytes())
}
