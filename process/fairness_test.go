package process_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
)

// At most 32 processes are stolen at a time.
func TestAnIdleSchedulerStealsHalf(t *testing.T) {
	for _, row := range []struct{ queued, stolen int }{{1, 1}, {2, 1}, {3, 2}, {10, 5}, {63, 32}, {64, 32}, {1000, 32}} {
		t.Run(fmt.Sprintf("of %d", row.queued), func(t *testing.T) {
			g := act.NewGroup(act.Config{Schedulers: 2, Clock: &servertest.Clock{}})
			defer func() { _ = g.Close() }()
			sys := process.WithBounds(1024, 16, 1)
			for _, s := range g.Schedulers() {
				require.NoError(t, sys.Setup(s))
			}
			busy, idle := g.Schedulers()[0], g.Schedulers()[1]
			busy.Spawn(act.Func(func(t *act.Task) act.Directive {
				for range row.queued {
					process.Spawn(t, process.Func[int](func(*process.Self[int]) act.Directive { return act.Done }), process.Options{})
				}
				return act.Done
			}))
			_, err := busy.Step(1)
			require.NoError(t, err)
			require.EqualValues(t, row.queued, sys.Alive())
			_, err = idle.Step(1)
			require.NoError(t, err)
			require.EqualValues(t, row.stolen, sys.Stolen())
			require.EqualValues(t, 1, sys.Counted().Ended)
		})
	}
}

// If tasks take long, an idle scheduler steals the processes that are queued behind them.
func TestAnIdleSchedulerStealsBehindLongTasks(t *testing.T) {
	x := newStepped(t, 2)
	x.clock.Pass(time.Second)
	x.all()
	at := -1
	process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		at = p.Scheduler().Index()
		return act.Yield
	}), process.Options{})
	step := func(scheduler int) int {
		n, err := x.g.Schedulers()[scheduler].Step(1)
		require.NoError(t, err)
		return n
	}
	for i := range 2 {
		step(i)
	}
	here := at
	for range 10 {
		require.Equal(t, 1, step(here))
		require.Zero(t, step(1-here), "an idle scheduler is not woken for a process that has the next turn here")
	}
	x.clock.Pass(2 * time.Millisecond) // as tasks that take long would
	require.Equal(t, 1, step(here))
	require.Equal(t, here, at)
	require.Equal(t, 1, step(1-here))
	require.Equal(t, 1-here, at)
}

// When all schedulers are idle, a message wakes one of them.
func TestAMessageWakesOneScheduler(t *testing.T) {
	x := newStepped(t, 3)
	to := x.spawn(process.Options{})
	x.all()
	require.NoError(t, to.Send(x.sys, func(*jobSelf) {}))
	woken := 0
	for i := range 3 {
		if x.only(i) > 0 {
			woken++
		}
	}
	require.Equal(t, 1, woken)
}

// four spawns four processes that sleep, and a function that sends each of them a message on scheduler 0, in the turn of a
// task. took returns which schedulers have run them since.
func four(x *stepped) (send func(job), took func() []int) {
	var all []process.Ref[job]
	var at []int
	for range 4 {
		all = append(all, x.spawn(process.Options{}))
	}
	x.all()
	send = func(do job) {
		x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
			for _, to := range all {
				require.NoError(x.t, to.Send(t, func(p *jobSelf) {
					at = append(at, p.Scheduler().Index())
					do(p)
				}))
			}
			return act.Done
		}))
	}
	took = func() (were []int) {
		were, at = at, nil
		return were
	}
	return send, took
}

func TestASleeperIsWokenForWhatATaskMadeReadyOnceItHasWaited(t *testing.T) {
	x := newStepped(t, 2)
	x.clock.Pass(time.Second)
	send, took := four(x)
	step := func(scheduler, n int) {
		_, err := x.g.Schedulers()[scheduler].Step(n)
		require.NoError(t, err)
	}

	send(func(*jobSelf) {})
	step(0, 1) // the task
	x.clock.Pass(20 * time.Microsecond)
	x.only(1)
	require.Empty(t, took(), "a few messages wake nobody")
	x.only(0)
	require.Equal(t, []int{0, 0, 0, 0}, took())

	send(func(p *jobSelf) { x.clock.Pass(10 * time.Microsecond) })
	step(0, 1)
	x.clock.Pass(15 * time.Microsecond)
	step(0, 1) // the turn of the runner, in which the third has waited for 25 µs already
	require.Equal(t, []int{0, 0, 0, 0}, took())
	require.Equal(t, 1, x.only(1), "it is woken, and comes too late")

	send(func(*jobSelf) {})
	step(0, 1)
	x.only(1)
	require.NotEmpty(t, took(), "processes had to wait here lately")
	x.all()
	took()

	for range 15 { // 16 times in all
		send(func(*jobSelf) {})
		x.all()
	}
	took()
	send(func(*jobSelf) {})
	step(0, 1)
	x.only(1)
	require.Empty(t, took(), "which was long ago")
	x.only(0)
	require.Equal(t, []int{0, 0, 0, 0}, took())
}
