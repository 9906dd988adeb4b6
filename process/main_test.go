package process_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/process"
)

func TestMain(m *testing.M) {
	// Busy schedulers let go of no processor; the goroutines of these tests need some too.
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// often is n in the long tier, and a tenth of it below and under the race detector.
func scaled(n int) int {
	if race.Enabled || tier.Current() < tier.Long {
		return n / 10
	}
	return n
}

// running is a System on a Group that runs while the test goes on.
type running struct {
	*servertest.Running
	sys *process.System
}

// start runs a new System, on so many schedulers, with what setup spawns. It is for the first scheduler only.
func start(t testing.TB, schedulers int, cfg process.Config, setup func(sys *process.System)) running {
	t.Helper()
	return startWith(t, act.Config{Schedulers: schedulers}, cfg, setup)
}

func startWith(t testing.TB, on act.Config, cfg process.Config, setup func(sys *process.System)) running {
	t.Helper()
	sys := process.New(cfg)
	r := running{servertest.Start(t, on, sys.Setup, func(s *act.Scheduler) error {
		if s.Index() == 0 {
			s.Hold(1) // what is set up may be over before Start has seen that it has begun
			setup(sys)
		}
		return nil
	}), sys}
	r.On(0, func(s *act.Scheduler) { s.Hold(-1) })
	return r
}

// end waits until no process is left, and Run returns. If that takes too long it says where everybody is.
func (r running) end() {
	r.T.Helper()
	defer r.watch()()
	require.NoError(r.T, r.End())
	n := r.sys.Stats()
	require.Zero(r.T, n.Alive)
	require.Equal(r.T, n.Spawned, n.Ended)
}

// watch logs what everybody does if it is not stopped in time.
func (r running) watch() (stop func()) {
	x := time.AfterFunc(2*servertest.Timeout, func() { r.T.Logf("stuck: %+v: %s", r.sys.Stats(), r.sys.States()) })
	return func() { x.Stop() }
}

// quiescent waits until nothing happens any more.
func (r running) quiescent() {
	r.T.Helper()
	defer r.watch()()
	f := r.sys.Quiescent()
	for end := time.Now().Add(3 * servertest.Timeout); !f.Resolved(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			require.FailNow(r.T, "never quiescent")
		}
	}
}

// table is a System on one scheduler that takes turns when the test says so, and whose time passes when it says so:
// what happens is a string.
type traced struct {
	t     testing.TB
	s     *act.Scheduler
	sys   *process.System
	clock *manualClock
	trace []byte
}

// onTheTable has tasks have one turn between two of the scheduler.
func newTraced(t testing.TB, cfg process.Config) *traced {
	t.Helper()
	x := &traced{t: t, clock: &manualClock{}, sys: process.New(cfg)}
	x.s = act.New(act.Config{TurnsPerPass: 1, Clock: x.clock, Logger: zap.NewNop()})
	require.NoError(t, x.sys.Setup(x.s))
	t.Cleanup(func() { _ = x.s.Close() }) // what sleeps holds it
	return x
}

// step takes turns until nothing is ready, and returns what has been noted meanwhile.
func (x *traced) step() string {
	x.t.Helper()
	for range 1000 {
		n, err := x.s.Step(1000)
		require.NoError(x.t, err)
		if n == 0 {
			return x.noted()
		}
	}
	require.FailNow(x.t, "it goes on and on", "%.100s", x.trace)
	return ""
}

// some takes so many turns of tasks and schedulers.
func (x *traced) some(turns int) string {
	x.t.Helper()
	_, err := x.s.Step(turns)
	require.NoError(x.t, err)
	return x.noted()
}

func (x *traced) note(s string) { x.trace = append(x.trace, s...) }

func (x *traced) noted() string {
	noted := string(x.trace)
	x.trace = x.trace[:0]
	return noted
}

// turn has f called in a turn of a task.
func (x *traced) turn(f func(t *act.Task)) {
	x.s.Spawn(act.Func(func(t *act.Task) act.Directive {
		f(t)
		return act.Done
	}))
}

func (x *traced) handler(h func(p *process.Self[int], m int)) process.Ref[int] {
	return process.Spawn(x.sys, process.Handler(h), process.Options{})
}

// sleeper spawns one that notes its name for each message.
func (x *traced) sleeper(name string) process.Ref[int] {
	return x.handler(func(*process.Self[int], int) { x.note(name) })
}

func (x *traced) send(to process.Ref[int], all ...int) {
	x.t.Helper()
	for _, m := range all {
		require.NoError(x.t, to.Send(x.sys, m))
	}
}
