package act_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/internal/thread"
)

// What was broken: all schedulers were bound, each to the CPU with its number, so that programs shared the first ones. What a
// scheduler offloads was not, and must not be: a process that it starts has the same CPUs.
func TestBoundSchedulersEachHaveACPUOfTheirOwn(t *testing.T) {
	for threads, most := range map[act.Threads]int{act.Locked: len(thread.CPUs()), act.Bound: 1} {
		masks := map[unix.CPUSet]bool{}
		g, _ := newGroup(t, act.Config{Schedulers: len(thread.CPUs()), Threads: threads})
		require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
			masks[mask()] = true
			var offloaded unix.CPUSet
			s.Spawn(act.Seq(&act.Call[int]{F: func() (int, error) { offloaded = mask(); return 0, nil }},
				act.Func(func(*act.Task) act.Directive {
					require.Equal(t, len(thread.CPUs()), offloaded.Count())
					return act.Done
				})))
			return nil
		}))
		require.Len(t, masks, len(thread.CPUs())/most)
		for set := range masks {
			require.Equal(t, most, set.Count())
		}
	}
}

// mask is that of the calling thread.
func mask() (set unix.CPUSet) {
	must(unix.SchedGetaffinity(0, &set))
	return set
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
	for end := time.Now().Add(servertest.Timeout); runtime.GOMAXPROCS(0) > 1; time.Sleep(time.Millisecond) {
		narrow(&one)
		if time.Now().After(end) {
			panic("GOMAXPROCS stays as it was")
		}
	}
}

// narrow binds all threads that the process has at this moment.
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
