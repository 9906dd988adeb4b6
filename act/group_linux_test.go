package act_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/shutdown"
)

func TestPinnedSchedulersEachHaveACPUOfTheirOwn(t *testing.T) {
	cpus := thread.CPUs()
	g, _ := newGroup(t, act.Config{Schedulers: len(cpus)})
	require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
		var set unix.CPUSet
		require.NoError(t, unix.SchedGetaffinity(0, &set))
		require.Equal(t, 1, set.Count())
		require.True(t, set.IsSet(cpus[s.Index()]))
		return nil
	}))
}

func init() { children["follower"] = follower }

// What was broken: GOMAXPROCS was put back as a number, and the runtime then no longer adapts it to the CPUs
// and the quota that the process has.
func TestAfterARunTheRuntimeStillFollowsTheCPUsOfTheProcess(t *testing.T) {
	tier.Need(t, tier.Full, "waits a second for the runtime")
	said, err := runChild(t, "follower")
	require.NoError(t, err, said)
}

// follower loses all CPUs but one, and waits for the runtime to see it: within about a second.
func follower() {
	must(os.Unsetenv("GOMAXPROCS"))
	runtime.SetDefaultGOMAXPROCS()
	must(act.Run(context.Background(), act.Config{Schedulers: runtime.GOMAXPROCS(0)}))
	var one unix.CPUSet
	one.Set(thread.CPUs()[0])
	for end := time.Now().Add(20 * time.Second); runtime.GOMAXPROCS(0) > 1; time.Sleep(time.Millisecond) {
		narrow(&one)
		if time.Now().After(end) {
			panic("GOMAXPROCS stays as it was")
		}
	}
}

// narrow binds all threads of the process: those that there are at this moment.
func narrow(to *unix.CPUSet) {
	threads, err := os.ReadDir("/proc/self/task")
	must(err)
	for _, id := range threads {
		n, err := strconv.Atoi(id.Name())
		must(err)
		if err := unix.SchedSetaffinity(n, to); err != unix.ESRCH { // one that has ended since
			must(err)
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestFiftyLoadedRoundsOfStartAndStopLeaveNothingBehind(t *testing.T) {
	for range 10 { // the runtime keeps threads that it needed once
		loadedRound(t)
	}
	before := countAll(t)
	for range 50 {
		loadedRound(t)
	}
	require.Eventually(t, func() bool { return countAll(t).within(before) }, time.Minute, 10*time.Millisecond,
		"before %+v, now %+v", before, countAll(t))
}

// loadedRound starts a server on two schedulers, puts load on it, and stops it in the middle.
func loadedRound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	terms := shutdown.Policy{Turns: 3, Time: 10 * time.Millisecond, Drop: true}
	err := act.Run(ctx, act.Config{Schedulers: 2, Shutdown: terms, Logger: zap.NewNop()}, func(s *act.Scheduler) error {
		for i := range 50 {
			s.Spawn(worker(s, i))
		}
		if s.Index() == 0 {
			s.Execute(func() {
				time.Sleep(time.Millisecond)
				cancel()
			})
		}
		return nil
	})
	var cut *shutdown.Cut
	require.True(t, err == nil || errors.As(err, &cut), "%v", err)
}

// worker is a task that never ends: it yields, sleeps, works off the thread or visits a sibling.
func worker(s *act.Scheduler, i int) act.Action {
	var timer act.Timer
	return act.Func(func(t *act.Task) act.Directive {
		switch i++; i % 4 {
		case 0:
			t.WakeAfter(&timer, time.Duration(i%3)*time.Millisecond)
			return act.Wait
		case 1:
			return t.Offload(func() { time.Sleep(10 * time.Microsecond) })
		case 2:
			back := t.Waker().Remote()
			if s.Group().Schedulers()[1-s.Index()].Post(func(*act.Scheduler) { back.Wake() }) == nil {
				return act.Wait
			}
		}
		return act.Yield
	})
}

// counts are what a process can leak.
type counts struct{ goroutines, descriptors, threads int }

func countAll(t *testing.T) counts {
	return counts{runtime.NumGoroutine(), entries(t, "/proc/self/fd"), entries(t, "/proc/self/task")}
}

// within allows for threads of the runtime, which needs more of them on a busy machine: a leak would be two a round, 100.
func (c counts) within(before counts) bool {
	return c.goroutines <= before.goroutines+1 && // require.Eventually's own
		c.descriptors <= before.descriptors && c.threads <= before.threads+50
}

func entries(t *testing.T, dir string) int {
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	return len(list)
}
