package enginetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// patience bounds what should happen soon on a machine that does other things too.
const patience = time.Minute

// never is too long for a test.
const never = time.Hour

// world is one store, and what a test does with it.
type world struct {
	*require.Assertions
	t     *testing.T
	host  host
	ctx   context.Context // ends when something hangs
	store stage.Store     // for the engines
	other stage.Store     // for the test, as another process has it

	paired bool // other is a connection of its own

	mu    sync.Mutex
	busy  int            // processors that have not returned
	begun map[string]int // by task and processor
	notes []string
}

func newWorld(t *testing.T, open func(t *testing.T) stage.Store, h host) *world {
	s := open(t)
	other := s
	p, paired := s.(Pair)
	if paired {
		s, other = p.Store, p.Other
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	w := &world{Assertions: require.New(t), t: t, host: h, ctx: ctx, store: s, other: other, paired: paired,
		begun: map[string]int{}}
	t.Cleanup(func() { // behind those of the runs
		w.eventually("all processors have returned", func() bool { return w.running() == 0 })
		cancel()
	})
	return w
}

// The chain of most tests.
const (
	created  = "CREATED"
	loading  = "LOADING_DATA"
	loaded   = "DATA_LOADED"
	building = "BUILDING_REPORT"
	finished = "FINISHED"
)

var report = stage.Begin(created).Then(loading, "load", loaded).Then(building, "build", finished)

// short has one stage to be worked on.
var short = stage.Begin(created).Then(loading, "load", finished)

// processors are those of a test by their ids. An id that is missing gets a processor that does nothing.
type processors map[string]stage.ProcessorFunc

// idle is a processor that does nothing.
func idle(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil }

// provider returns a Provider that counts the calls of processors.
func (w *world) provider(ps processors) stage.Provider {
	all := processors{"load": idle, "build": idle}
	maps.Copy(all, ps)
	p := stage.Processors{}
	for id, f := range all {
		p[id] = stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
			w.count(t.ID, id, +1)
			defer w.count(t.ID, id, -1)
			return f(ctx, t)
		})
	}
	return p
}

func (w *world) count(task stage.ID, id string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy += n; n > 0 {
		w.begun[fmt.Sprint(task, " ", id)]++
	}
}

// running is how many processors have not returned.
func (w *world) running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy
}

// times is how often a processor has begun with a task.
func (w *world) times(task stage.ID, id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun[fmt.Sprint(task, " ", id)]
}

// note adds to the notes of a test.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// noted returns them, and begins anew.
func (w *world) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := w.notes
	w.notes = nil
	return notes
}

// config returns a Config for tests to change: polls and heartbeats are quick, and leases longer than a test.
func (w *world) config(ps processors) stage.Config {
	return stage.Config{
		Store:     w.store,
		Kinds:     map[string]stage.Kind{"report": {Chain: report}, "short": {Chain: short}},
		Provider:  w.provider(ps),
		Poll:      20 * time.Millisecond,
		Heartbeat: 50 * time.Millisecond,
		Lease:     patience,
		Backoff:   func(int) time.Duration { return 0 },
		Logger:    zap.NewNop(),
	}
}

// heartless is cfg without heartbeats to speak of.
func heartless(cfg stage.Config) stage.Config {
	cfg.Lease, cfg.Heartbeat = 2*never, never
	return cfg
}

func (w *world) engine(cfg stage.Config) *stage.Engine {
	w.t.Helper()
	e, err := stage.New(cfg)
	w.NoError(err)
	return e
}

// start runs an engine of cfg in the host of the test.
func (w *world) start(cfg stage.Config) *run {
	w.t.Helper()
	return w.host.start(w, w.engine(cfg))
}

// enqueue adds a task from elsewhere.
func (w *world) enqueue(kind string) stage.ID {
	w.t.Helper()
	return w.enqueued(stage.NewTask{Kind: kind, Stage: created})
}

func (w *world) enqueued(n stage.NewTask) stage.ID {
	w.t.Helper()
	ids, err := w.other.Enqueue(w.ctx, n)
	w.NoError(err)
	return ids[0]
}

// get returns a task as others see it.
func (w *world) get(id stage.ID) stage.Task {
	w.t.Helper()
	t, err := w.other.Get(w.ctx, id)
	w.NoError(err)
	return t
}

// see is where a task is, and what is being done about it.
func (w *world) see(id stage.ID) string {
	w.t.Helper()
	return state(w.get(id))
}

func state(t stage.Task) string { return fmt.Sprintf("%s, %s", t.Stage, t.Status) }

// What see returns, mostly.
const (
	isNew       = created + ", NORMAL"
	isLoading   = loading + ", IN_PROCESSING"
	isBuilding  = building + ", IN_PROCESSING"
	isFinished  = finished + ", NORMAL"
	isSuspended = loaded + ", SUSPENDED"
)

// becomes waits until a task is seen like that.
func (w *world) becomes(id stage.ID, what string) {
	w.t.Helper()
	var seen string
	if !w.within(func() bool { seen = w.see(id); return seen == what }) {
		w.FailNow(fmt.Sprintf("task %d is at %s, and not at %s", id, seen, what))
	}
}

// become is becomes for several.
func (w *world) become(ids []stage.ID, what string) {
	w.t.Helper()
	for _, id := range ids {
		w.becomes(id, what)
	}
}

// yes is for requests that are to be answered with true.
func (w *world) yes(ok bool, err error) {
	w.t.Helper()
	w.NoError(err)
	w.True(ok)
}

// no is for requests that are to be answered with false.
func (w *world) no(ok bool, err error) {
	w.t.Helper()
	w.NoError(err)
	w.False(ok)
}

// eventually waits until f is true.
func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	if !w.within(f) {
		w.FailNow("it did not happen: " + what)
	}
}

// within reports whether f becomes true. It asks now and then: with a question each millisecond, several tests at a time keep
// the engines from the connections of the store.
func (w *world) within(f func() bool) bool {
	for end := time.Now().Add(patience); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// comes waits for c to be closed, or to have something.
func (w *world) comes(what string, c <-chan struct{}) {
	w.t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		w.FailNow("it did not happen: " + what)
	}
}

// together calls f so many times at once, and returns when all have returned.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// aside calls f on a goroutine, which ends before the test does.
func (w *world) aside(f func()) {
	ended := begin(f)
	w.t.Cleanup(func() { w.comes("what was begun aside has ended", ended) })
}

// begin calls f on a goroutine. The channel is closed when f has returned.
func begin(f func()) (ended <-chan struct{}) {
	c := make(chan struct{})
	go func() {
		defer close(c)
		f()
	}()
	return c
}

// since begins to measure.
func since() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// host is where engines run.
type host struct {
	name  string
	start func(w *world, e *stage.Engine) *run
}

// run is an engine that runs.
type run struct {
	*stage.Engine
	w     *world
	group *act.Group                   // or nil
	order func(o shutdown.Order) error // gives it, and returns how Run has ended
	over  bool
}

var (
	goroutines = host{"goroutines", onGoroutines}
	group      = host{"Group", func(w *world, e *stage.Engine) *run { return inAGroup(w, e, act.Config{}) }}
)

// abrupt ends a run at once.
var abrupt = shutdown.Policy{Kind: shutdown.Halting, Drop: true}

func onGoroutines(w *world, e *stage.Engine) *run {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := begin(func() { _ = e.Run(ctx) })
	return w.orders(e, func(o shutdown.Order) error {
		err := e.Stop(o)
		cancel()
		<-ended
		return err
	})
}

func inAGroup(w *world, e *stage.Engine, cfg act.Config) *run {
	var err error
	cfg.Schedulers, cfg.Threads, cfg.Logger = 2, act.Locked, zap.NewNop()
	g := act.NewGroup(cfg)
	ended := begin(func() { err = g.Run(context.Background(), e.Setup) })
	w.t.Cleanup(func() { _ = g.Close() }) // behind that of the run
	r := w.orders(e, func(o shutdown.Order) error {
		g.Shutdown(o)
		<-ended
		return err
	})
	r.group = g
	return r
}

func (w *world) orders(e *stage.Engine, order func(o shutdown.Order) error) *run {
	r := &run{Engine: e, w: w, order: order}
	w.t.Cleanup(func() {
		if !r.over {
			_ = r.stop(abrupt)
		}
	})
	return r
}

// stop ends the run on the terms, and returns how.
func (r *run) stop(terms shutdown.Policy) error {
	r.over = true
	var err error
	r.w.comes("the engine stops", begin(func() { err = r.order(shutdown.Now{Terms: terms}) }))
	return err
}

// enqueue adds a task here.
func (r *run) enqueue(kind string) stage.ID {
	r.w.t.Helper()
	id, err := r.Enqueue(r.w.ctx, kind, nil)
	r.w.NoError(err)
	return id
}

// suspend is asked of this engine.
func (r *run) suspend(id stage.ID) {
	r.w.t.Helper()
	r.w.yes(r.Suspend(r.w.ctx, id))
}

func (r *run) resume(id stage.ID) {
	r.w.t.Helper()
	r.w.yes(r.Resume(r.w.ctx, id))
}
