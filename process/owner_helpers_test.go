package process_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// deed is a message that says what its receiver has to do with it.
type deed func(p *doer)

type doer = process.Self[deed]

// doesDeeds is what has the turns of most processes here.
var doesDeeds = process.Handler[deed](func(p *doer, m deed) { m(p) })

// leaves, falters and bursts are deeds, and ends.
func leaves(p *doer)  { p.Exit() }
func falters(p *doer) { p.Fail(errFaltered) }
func bursts(*doer)    { panic("burst") }

type sentence string

func (s sentence) Error() string { return string(s) }

const errFaltered = sentence("it has faltered")

// handClock stands still until somebody moves it.
type handClock struct{ now atomic.Int64 }

func (c *handClock) Monotonic() time.Duration { return time.Duration(c.now.Load()) }
func (c *handClock) Wall() time.Time          { return time.Unix(0, c.now.Load()) }
func (c *handClock) pass(d time.Duration)     { c.now.Add(int64(d)) }

// atHand is a System whose schedulers take turns when the test says so, on its own goroutine, by a clock that the test
// moves. So a process runs on the scheduler that is stepped next, and what is a race elsewhere is a line here.
type atHand struct {
	t     testing.TB
	sys   *process.System
	g     *act.Group
	clock *handClock
	logs  *observer.ObservedLogs
}

func takeInHand(t testing.TB, schedulers int) *atHand {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	x := &atHand{t: t, sys: process.New(process.Config{}), clock: &handClock{}, logs: logs}
	x.g = act.NewGroup(act.Config{Schedulers: schedulers, Threads: act.Stepped, Clock: x.clock, Logger: zap.New(core)})
	for _, s := range x.g.Schedulers() {
		require.NoError(t, x.sys.Setup(s))
	}
	t.Cleanup(func() { _ = x.g.Close() }) // a Cut is the business of the tests that cut
	return x
}

// only steps one scheduler until it has nothing to do.
func (x *atHand) only(scheduler int) (turns int) {
	x.t.Helper()
	s := x.g.Schedulers()[scheduler]
	for range 1000 {
		n, err := s.Step(1000)
		require.NoError(x.t, err)
		if turns += n; n == 0 {
			return turns
		}
	}
	require.FailNow(x.t, "it does not come to rest")
	return turns
}

// all steps all schedulers until none has anything to do.
func (x *atHand) all() {
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
	require.FailNow(x.t, "they do not come to rest")
}

// doer spawns a process that does what it is sent.
func (x *atHand) doer(o process.Options) process.Ref[deed] { return process.Spawn(x.sys, doesDeeds, o) }

// on has to do m on a certain scheduler, which looks into all queues.
func (x *atHand) on(scheduler int, to process.Ref[deed], m deed) {
	x.t.Helper()
	done := false
	x.sys.Quiescent() // which has all of them look
	require.NoError(x.t, to.Send(x.sys, func(p *doer) {
		done = true
		require.Equal(x.t, scheduler, p.Scheduler().Index())
		m(p)
	}))
	x.only(scheduler)
	require.True(x.t, done)
}

// do has to do m, and steps all.
func (x *atHand) do(to process.Ref[deed], m deed) {
	x.t.Helper()
	require.NoError(x.t, to.Send(x.sys, m))
	x.all()
}

// later lets time pass, and steps all.
func (x *atHand) later(d time.Duration) {
	x.t.Helper()
	x.clock.pass(d)
	x.all()
}

// underOrder reports whether an order is in force on the first.
func (x *atHand) underOrder() (under bool) {
	x.t.Helper()
	x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		under = t.Order() != nil
		return act.Done
	}))
	x.only(0)
	return under
}

// witness is a process that hears of the end of others.
type witness struct {
	process.Ref[deed]
	mu      sync.Mutex
	notices []process.Notice
}

// heard are the Notices that have come, in order.
func (w *witness) heard() []process.Notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]process.Notice(nil), w.notices...)
}

// reasons are those of the Notices that have come.
func (w *witness) reasons() (all []process.Reason) {
	for _, n := range w.heard() {
		all = append(all, n.Reason)
	}
	return all
}

// take makes a Notice a message.
func (w *witness) take(n process.Notice) deed {
	return func(*doer) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notices = append(w.notices, n)
	}
}

// witness spawns one that monitors each of these.
func (x *atHand) witness(of ...process.AnyRef) *witness {
	x.t.Helper()
	w := &witness{Ref: x.doer(process.Options{Name: "observer", Limit: process.Unbounded})}
	x.do(w.Ref, func(p *doer) {
		for _, of := range of {
			process.Watch(p, of, w.take)
		}
	})
	return w
}

// onlyOne returns the only one.
func onlyOne[T any](t testing.TB, all []T) T {
	t.Helper()
	require.Len(t, all, 1)
	return all[0]
}

// estate is a System in a Group that runs until its keeper leaves.
type estate struct {
	*servertest.Running
	sys    *process.System
	keeper process.Ref[deed]
}

func settleIn(t testing.TB, cfg act.Config, setup ...func(*act.Scheduler) error) *estate {
	t.Helper()
	x := &estate{sys: process.New(process.Config{})}
	x.Running = servertest.Start(t, cfg, append([]func(*act.Scheduler) error{x.sys.Setup, x.keep}, setup...)...)
	return x
}

func (x *estate) keep(s *act.Scheduler) error {
	if s.Index() == 0 {
		x.keeper = process.Spawn(x.sys, doesDeeds, process.Options{Name: "keeper"})
	}
	return nil
}

// close has the keeper leave, and Run end.
func (x *estate) close() {
	x.T.Helper()
	require.NoError(x.T, x.keeper.Send(x.sys, leaves))
	require.NoError(x.T, x.End())
}

func (x *estate) doer(o process.Options) process.Ref[deed] { return process.Spawn(x.sys, doesDeeds, o) }

// do has to do m, and returns when it is done.
func (x *estate) do(to process.Ref[deed], m deed) {
	x.T.Helper()
	done := make(chan struct{})
	require.NoError(x.T, to.Deliver(context.Background(), func(p *doer) {
		defer close(done)
		m(p)
	}))
	servertest.Receive(x.T, done)
}

// quiesce returns when nothing happens any more.
func (x *estate) quiesce() {
	x.T.Helper()
	quiet := x.sys.Quiescent()
	x.until("quiescence", quiet.Resolved)
}

// until returns when f is true.
func (x *estate) until(what string, f func() bool) {
	x.T.Helper()
	for end := time.Now().Add(servertest.Timeout); !f(); time.Sleep(20 * time.Microsecond) {
		if time.Now().After(end) {
			require.FailNow(x.T, "it does not happen: "+what)
		}
	}
}

// ended returns the Notice of a process that has ended, or is about to.
func (x *estate) ended(of process.AnyRef) process.Notice {
	x.T.Helper()
	f := process.Ended(of)
	x.until("the end", f.Resolved)
	n, err := f.Value()
	require.NoError(x.T, err)
	return n
}

// runToEnd is Group.Run, if it ends.
func runToEnd(t testing.TB, g *act.Group, setup ...func(*act.Scheduler) error) (err error) {
	t.Helper()
	servertest.InTime(t, func() { err = g.Run(context.Background(), setup...) })
	return err
}

// namedOrder is an order with a name.
type namedOrder struct {
	name  string
	terms shutdown.Policy
}

func (o namedOrder) Policy() shutdown.Policy { return o.terms }

// inUse is how much memory is in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// drains lets everything go on until it ends by itself.
var drains = shutdown.Now{Terms: shutdown.Unbounded}
