package readiness_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/price"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/tier"
)

// Each pass brings one look at the kernel and a turn for every task, 64 turns at least.
func TestPriceOfATurnWithTheEngine(t *testing.T) {
	for _, c := range []struct {
		tasks int
		most  float64
	}{{1, 15}, {64, 10}} {
		t.Run(fmt.Sprint(c.tasks), func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s := yielding(t, c.tasks)
			price.Require(t, c.most, func(n int) {
				_, err := s.Step(n)
				require.NoError(t, err)
			})
		})
	}
}

// yielding returns a scheduler with its engine and tasks that never stop yielding.
func yielding(t testing.TB, tasks int) *act.Scheduler {
	s := act.New(act.Config{})
	t.Cleanup(func() { _ = s.Close() }) // a Cut: the tasks are still there
	require.NoError(t, readiness.Of(s).Open())
	for range tasks {
		s.Spawn(endless{})
	}
	return s
}

type endless struct{}

func (endless) Act(*act.Task) act.Directive { return act.Yield }

// A poster whose scheduler sleeps, or is about to, pays the place in the inbox and the write to the eventfd: no more
// than twice what the bare write costs. What the kernel adds for waking a thread is not in it, see
// BenchmarkPostToAThreadAsleep: it is the same for every way to wake one, some microseconds.
func TestAPostToASleeperCostsAtMostTwoBareWrites(t *testing.T) {
	tier.Measure(t, "measures time")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	post, write := postsInSleep(t, 2000)
	t.Logf("a post %.0f ns, a bare write %.0f ns", post, write)
	require.LessOrEqual(t, post, 2*write, "nanoseconds")
}

// insomnia is an Idler that posts whenever the thread is about to sleep, when it counts as asleep already. So
// there is a write for each post, and the sleep that follows ends at once.
type insomnia struct {
	act.Idler
	asleep func()
}

func (i *insomnia) Idle(atMost time.Duration) {
	if atMost != 0 {
		i.asleep()
	}
	i.Idler.Idle(atMost)
}

// postsInSleep returns the medians of what n Posts take, and of what bare writes to another eventfd take in the same
// moments, each without what it takes to look at the clock.
func postsInSleep(t *testing.T, n int) (post, write float64) {
	eventfd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(eventfd)
	one := binary.NativeEndian.AppendUint64(nil, 1)
	var s *act.Scheduler
	var posts, writes, looks []float64
	posted := func(s *act.Scheduler) {
		if len(posts) == n {
			s.Hold(-1)
		}
	}
	s = act.New(act.Config{Idle: func(_ *act.Scheduler, engine act.Idler) act.Idler {
		return &insomnia{engine, func() {
			looks = append(looks, price.Of(func() {}))
			writes = append(writes, price.Of(func() { _, _ = unix.Write(eventfd, one) }))
			posts = append(posts, price.Of(func() { s.Post(posted) }))
		}}
	}})
	defer s.Close()
	require.NoError(t, readiness.Of(s).Open())
	s.Hold(1)
	require.NoError(t, s.Run())
	look := median(looks)
	return median(posts) - look, median(writes) - look
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// What a poster pays where the thread is in the kernel, and what a bare write to an eventfd costs that wakes
// a thread from epoll_wait.
func BenchmarkPostToAThreadAsleep(b *testing.B) {
	var asleep atomic.Bool
	s := act.New(act.Config{Idle: func(_ *act.Scheduler, engine act.Idler) act.Idler {
		return &insomnia{engine, func() { asleep.Store(true) }}
	}})
	defer s.Close()
	err := readiness.Of(s).Open()
	require.NoError(b, err)
	s.Hold(1)
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	f := func(*act.Scheduler) {}
	b.ReportMetric(wakes(b.N, &asleep, func() { s.Post(f) }), "ns/post")
	s.Post(func(s *act.Scheduler) { s.Hold(-1) })
	require.NoError(b, <-ended)
	b.ReportMetric(bareWakes(b), "ns/write")
}

func bareWakes(b *testing.B) float64 {
	var asleep, over atomic.Bool
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(b, err)
	defer unix.Close(epfd)
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	require.NoError(b, err)
	defer unix.Close(fd)
	require.NoError(b, unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for events := make([]unix.EpollEvent, 1); !over.Load(); {
			asleep.Store(true)
			_, _ = unix.EpollWait(epfd, events, -1)
		}
	}()
	one := make([]byte, 8)
	binary.NativeEndian.PutUint64(one, 1)
	write := func() { _, _ = unix.Write(fd, one) }
	took := wakes(b.N, &asleep, write)
	over.Store(true)
	write()
	<-ended
	return took
}

// wakes returns the median of what wake took, each time when the other thread is asleep.
func wakes(n int, asleep *atomic.Bool, wake func()) float64 {
	took := make([]time.Duration, max(n, 10))
	for i := range took {
		for !asleep.Swap(false) {
			time.Sleep(10 * time.Microsecond)
		}
		time.Sleep(50 * time.Microsecond) // it was only about to
		began := time.Now()
		wake()
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return float64(took[len(took)/2])
}
