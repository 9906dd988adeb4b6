package process_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/process"
)

func TestMain(m *testing.M) {
	if os.Getenv("SIM_SEEDS") == "" {
		os.Setenv("SIM_SEEDS", tier.Choose("50", "2", "500")) // the full tier runs under the race detector
	}
	servertest.Main(m)
}

// running is a System on a Group that runs during the test.
type running struct {
	*servertest.Running
	sys *process.System
}

// start runs a new System. setup is called on the first scheduler.
func start(t testing.TB, schedulers int, setup func(sys *process.System)) running {
	t.Helper()
	sys := process.New()
	r := running{servertest.Start(t, act.Config{Schedulers: schedulers}, sys.Setup, func(s *act.Scheduler) error {
		if s.Index() == 0 {
			s.Internals().KeepRunning(1) // else the processes may have ended before Start has seen that Run has begun
			setup(sys)
		}
		return nil
	}), sys}
	r.On(0, func(s *act.Scheduler) { s.Internals().KeepRunning(-1) })
	return r
}

// end waits until Run returns, with no process left.
func (r running) end() {
	r.T.Helper()
	require.NoError(r.T, r.End())
	require.Zero(r.T, r.sys.Alive())
}

// traced is a System on one scheduler. The test takes its turns and moves its clock, and processes note what happens in
// a string.
type traced struct {
	t     testing.TB
	s     *act.Scheduler
	sys   *process.System
	clock *servertest.Clock
	trace []byte
}

// newTraced returns a traced System whose tasks have one turn in each pass.
func newTraced(t testing.TB, sys *process.System) *traced {
	t.Helper()
	x := &traced{t: t, clock: &servertest.Clock{}, sys: sys}
	x.s = act.New(act.Config{TurnsPerPass: 1, Clock: x.clock, Logger: zap.NewNop()})
	require.NoError(t, x.sys.Setup(x.s))
	t.Cleanup(func() { _ = x.s.Close() }) // sleeping processes are cut
	return x
}

// step takes turns until nothing is ready, and returns what was noted.
func (x *traced) step() string {
	x.t.Helper()
	for range 1000 {
		n, err := x.s.Step(1000)
		require.NoError(x.t, err)
		if n == 0 {
			return x.noted()
		}
	}
	require.FailNow(x.t, "it never becomes idle", "%.100s", x.trace)
	return ""
}

// some takes a number of turns, and returns what was noted.
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

// turn calls f in a turn of a new task.
func (x *traced) turn(f func(t *act.Task)) {
	x.s.Spawn(act.Func(func(t *act.Task) act.Directive {
		f(t)
		return act.Done
	}))
}

func (x *traced) handler(h func(p *process.Self[int], m int)) process.Ref[int] {
	return process.Spawn(x.sys, process.Handler(h), process.Options{})
}

// sleeper spawns a process that notes its name for each message.
func (x *traced) sleeper(name string) process.Ref[int] {
	return x.handler(func(*process.Self[int], int) { x.note(name) })
}

func (x *traced) send(to process.Ref[int], all ...int) {
	x.t.Helper()
	for _, m := range all {
		require.NoError(x.t, to.Send(x.sys, m))
	}
}
