package process_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// job is a message that its receiver calls.
type job func(p *jobSelf)

type jobSelf = process.Self[job]

// runJobs is the Action of most processes here.
var runJobs = process.Handler[job](func(p *jobSelf, m job) { m(p) })

// exits, fails and panics are jobs that end their process.
func exits(p *jobSelf) { p.Exit() }
func fails(p *jobSelf) { p.Fail(errFailed) }
func panics(*jobSelf)  { panic("burst") }

type sentence string

func (s sentence) Error() string { return string(s) }

const errFailed = sentence("it has failed")

// stepped is a System whose schedulers the test steps on its own goroutine, by a clock that it moves. A process runs on
// the scheduler that is stepped next, so what is a race elsewhere is deterministic here.
type stepped struct {
	t     testing.TB
	sys   *process.System
	g     *act.Group
	clock *servertest.Clock
	logs  *observer.ObservedLogs
}

func newStepped(t testing.TB, schedulers int) *stepped {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	x := &stepped{t: t, sys: process.New(), clock: &servertest.Clock{}, logs: logs}
	x.g = act.NewGroup(act.Config{Schedulers: schedulers, Threads: act.Stepped, Clock: x.clock, Logger: zap.New(core)})
	for _, s := range x.g.Schedulers() {
		require.NoError(t, x.sys.Setup(s))
	}
	t.Cleanup(func() { _ = x.g.Close() }) // sleeping processes are cut
	return x
}

// only steps one scheduler until nothing is ready.
func (x *stepped) only(scheduler int) (turns int) {
	x.t.Helper()
	s := x.g.Schedulers()[scheduler]
	for range 1000 {
		n, err := s.Step(1000)
		require.NoError(x.t, err)
		if turns += n; n == 0 {
			return turns
		}
	}
	require.FailNow(x.t, "it never becomes idle")
	return turns
}

// all steps all schedulers until nothing is ready.
func (x *stepped) all() {
	x.t.Helper()
	for range 1000 {
		turns := 0
		for i := range x.g.Schedulers() {
			turns += x.only(i)
		}
		if turns == 0 {
			return
		}
	}
	require.FailNow(x.t, "they never become idle")
}

func (x *stepped) spawn(o process.Options) process.Ref[job] { return process.Spawn(x.sys, runJobs, o) }

// on runs m on a certain scheduler, which steals the process if it has to.
func (x *stepped) on(scheduler int, to process.Ref[job], m job) {
	x.t.Helper()
	done := false
	x.sys.Quiescent() // wakes all schedulers
	require.NoError(x.t, to.Send(x.sys, func(p *jobSelf) {
		done = true
		require.Equal(x.t, scheduler, p.Scheduler().Index())
		m(p)
	}))
	x.only(scheduler)
	require.True(x.t, done)
}

// do runs m, and steps all schedulers.
func (x *stepped) do(to process.Ref[job], m job) {
	x.t.Helper()
	require.NoError(x.t, to.Send(x.sys, m))
	x.all()
}

// later moves the clock, and steps all schedulers.
func (x *stepped) later(d time.Duration) {
	x.t.Helper()
	x.clock.Pass(d)
	x.all()
}

// underOrder reports whether an order is in force on the first scheduler.
func (x *stepped) underOrder() (under bool) {
	x.t.Helper()
	x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		under = t.Order() != nil
		return act.Done
	}))
	x.only(0)
	return under
}

// watcher is a process that collects Notices.
type watcher struct {
	process.Ref[job]
	mu      sync.Mutex
	notices []process.Notice
}

// heard returns the Notices that have arrived, in order.
func (w *watcher) heard() []process.Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]process.Notice(nil), w.notices...)
}

// reasons returns the Reasons of the Notices.
func (w *watcher) reasons() (all []process.Reason) {
	for _, n := range w.heard() {
		all = append(all, n.Reason)
	}
	return all
}

// take turns a Notice into a job.
func (w *watcher) take(n process.Notice) job {
	return func(*jobSelf) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notices = append(w.notices, n)
	}
}

// watcher spawns a process that watches each of these.
func (x *stepped) watcher(of ...process.AnyRef) *watcher {
	x.t.Helper()
	w := &watcher{Ref: x.spawn(process.Options{Name: "observer", Limit: -1})}
	x.do(w.Ref, func(p *jobSelf) {
		for _, of := range of {
			process.Watch(p, of, w.take)
		}
	})
	return w
}

// onlyOne returns the only element.
func onlyOne[T any](t testing.TB, all []T) T {
	t.Helper()
	require.Len(t, all, 1)
	return all[0]
}

// runToEnd calls Group.Run, and fails if it does not return in time.
func runToEnd(t testing.TB, g *act.Group, setup ...func(*act.Scheduler) error) (err error) {
	t.Helper()
	servertest.InTime(t, func() { err = g.Run(context.Background(), setup...) })
	return err
}

// namedOrder is an order with a name, for logs.
type namedOrder struct {
	name  string
	terms shutdown.Policy
}

func (o namedOrder) Policy() shutdown.Policy { return o.terms }

// drain is an order without a bound.
var drain = shutdown.Policy{Kind: shutdown.Unbounded}
