package nethttp

import (
	"cmp"
	"math"
	"net/http"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/lane"
	"github.com/daimon-go/daimon/internal/summary"
)

// Adapter makes an httpd.Handler of an http.Handler: its Serve. It may be used on any number of schedulers at a time, and
// must not be changed meanwhile.
type Adapter struct {
	// Handler answers the requests, each on a goroutine of its own unless Inline is set. nil means http.DefaultServeMux.
	Handler http.Handler
	// Most bounds how many requests are handled at a time, on all schedulers together. Beyond it the answer is 503 with
	// Retry-After. A handler counts until it has returned, even if its client has gone. 0 means no bound: then each open
	// connection has at most one handler at a time, and handlers whose clients have gone may still run besides.
	Most int
	// Inline calls handlers on the scheduler's thread, not on a goroutine, for handlers that never block: a request then costs
	// about three quarters. A request is handled when its whole body has arrived, of at most 4 MiB (413), and the answer is
	// sent when the handler returns. All of its content is kept until it is sent, and counts for the listener.Budget; for a
	// file that io.Copy sends after a Content-Length, only the descriptor is kept. Hijack and deadlines are not supported, and
	// Most does not count. A handler that calls runtime.Goexit, as testing.T.FailNow does, ends its scheduler.
	Inline bool

	of      *call // nil: of no Server
	only2   bool  // HTTP/1 is not among the protocols of the Server
	running atomic.Int64
	server  http.Server // for http.ServerContextKey, which some handlers look for
}

// Serve is the httpd.Handler that answers a request by Handler: give it to an httpd.Mux or an httpd.Server.
func (a *Adapter) Serve(w *httpd.Response, r *httpd.Request) act.Action {
	if a.only2 && r.Proto() != "HTTP/2.0" {
		return aborted
	}
	if string(r.Path()) == "*" { // OPTIONS of the server as a whole, which net/http answers likewise
		return nil
	}
	if a.closes() {
		w.CloseAfter()
	}
	if a.Inline {
		return a.inline(w, r)
	}
	if a.running.Add(1) > int64(cmp.Or(a.Most, math.MaxInt)) {
		a.running.Add(-1)
		w.StatusOnly(http.StatusServiceUnavailable)
		w.Add("Retry-After", "1")
		executors.Get(r.Scheduler()).refused++
		crowded.Add(r.Scheduler(), func(n *int) { *n++ })
		return nil
	}
	x, err := newExchange(a, w, r)
	if err != nil {
		a.running.Add(-1)
		return refusal(err)
	}
	return x
}

var crowded = summary.New(func(log *zap.Logger, n int) {
	log.Info("requests were refused: Adapter.Most others are being handled", zap.Int("in a second", n))
})

// refusal is the action of a request that is none of net/http.
func refusal(err error) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		return t.Fail(&syntax.Refusal{Status: http.StatusBadRequest, Why: err.Error(), Err: err})
	})
}

// aborted is the action of a request that gets no answer.
var aborted = act.Func(func(t *act.Task) act.Directive { return t.Fail(httpd.ErrAbort) })

// closes reports whether the Server, if there is one, wants connections closed after their answers.
func (a *Adapter) closes() bool { return a.of != nil && (a.of.closes.Load() || a.of.ended.Load()) }

func (a *Adapter) handler() http.Handler {
	if a.Handler == nil {
		return http.DefaultServeMux
	}
	return a.Handler
}

// executor has the goroutines of a scheduler's handlers: as many as there are handlers that run.
type executor struct {
	act.Executor
	wait  lane.Wait
	pool  batcher // the Executor, if it is the default one
	atEnd func(f func())
	given bool // something since the latest end of a pass

	begun, refused uint64       // requests: handlers called, and 503
	running        atomic.Int64 // handlers
}

// Counts implements facts.Counter.
func (c *executor) Counts(add func(name string, n uint64)) {
	add("http_handlers", uint64(c.running.Load()))
	add("http_handlers_total", c.begun)
	add("http_handlers_refused_total", c.refused)
}

// batcher is the default Executor: it can start the goroutines for many functions at once.
type batcher interface {
	Give(f func())
	Recruit()
}

var executors = act.NewLocal(func(s *act.Scheduler) *executor {
	c := &executor{Executor: s.Internals().Reserve(math.MaxInt32), atEnd: func(f func()) { s.Internals().AtPassEnd(f) }}
	c.wait = lane.WaitOf(c.Executor)
	c.pool, _ = c.Executor.(batcher)
	return c
})

// Execute has f called on a goroutine. With the default Executor, the goroutines for all requests of a pass begin at its
// end: otherwise each might interrupt the thread at once.
func (c *executor) Execute(f func()) {
	switch {
	case c.pool == nil:
		c.Executor.Execute(f)
		return
	case !c.given:
		c.given = true
		c.atEnd(c.begin)
	}
	c.pool.Give(f)
}

func (c *executor) begin() {
	c.given = false
	c.pool.Recruit()
}
