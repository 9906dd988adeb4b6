package readiness_test

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/tier"
)

// bareCall is the price of a call of crowd, in nanoseconds, on the machine where the bounds were set.
const bareCall = 1.9

// crowd is what a bare call calls: through an interface that is found in memory, as a scheduler must
// find it too. The compiler makes a plain call of one that it sees through.
var crowd [64]act.Action

func init() {
	for i := range crowd {
		crowd[i] = endless{}
	}
}

func crowdCalls(n int) {
	for i := range n {
		if crowd[i%len(crowd)].Act(nil) != act.Yield {
			panic("another Directive")
		}
	}
}

// With 64 ready each pass brings one look and 64 turns of different tasks.
func TestATurnAmong64WithTheEngineCostsAtMostTenNanoseconds(t *testing.T) {
	tier.Measure(t, "measures time")
	requirePrice(t, 10, func() float64 {
		s := yielding(t)
		for range 63 {
			s.Spawn(endless{})
		}
		return turns(t, s)
	})
}

// What a poster pays where the thread sleeps, or is about to: the place in the inbox, and the write to the
// eventfd. What the kernel adds for waking a thread is not in it, see BenchmarkPostToAThreadAsleep: it is the
// same for every way to wake one, some microseconds.
func TestAPostToASleeperCostsAtMostFourHundredNanoseconds(t *testing.T) {
	tier.Measure(t, "measures time")
	requirePrice(t, 400, func() float64 { return postsInSleep(t, 2000) })
}

// requirePrice requires price to return at most so many nanoseconds, or proportionally more on a machine that is slower
// than the one where the bounds were set: as much as a bare call, measured at the same moment, takes longer. A faster
// bare call does not tighten the bound, since it says nothing about memory and system calls. Other load only raises
// prices, so the lowest of several measurements counts.
func requirePrice(t *testing.T, most float64, price func() float64) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	most *= layout
	for tries := 1; ; tries++ {
		const calls = 500_000
		bare := median(func() float64 {
			began := threadTime(t)
			crowdCalls(calls)
			return float64(threadTime(t)-began) / calls
		})
		ns, bound := price(), most*max(1, bare/bareCall)
		if ns <= bound || tries == 40 {
			t.Logf("%.1f ns, at most %.1f; a bare call %.1f ns", ns, bound, bare)
			require.LessOrEqual(t, ns, bound, "nanoseconds")
			return
		}
		time.Sleep(50 * time.Millisecond) // until other load has gone
	}
}

// median is that of some measurements.
func median(measure func() float64) float64 {
	var all [21]float64
	for i := range all {
		all[i] = measure()
	}
	slices.Sort(all[:])
	return all[len(all)/2]
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

// postsInSleep returns what a Post took in the median of n, without what it takes to look at the clock.
func postsInSleep(t *testing.T, n int) float64 {
	var s *act.Scheduler
	var posts, looks []int64
	posted := func(s *act.Scheduler) {
		if len(posts) == n {
			s.Hold(-1)
		}
	}
	s = act.New(act.Config{Idle: func(_ *act.Scheduler, engine act.Idler) act.Idler {
		return &insomnia{engine, func() {
			a := threadTime(t)
			b := threadTime(t)
			s.Post(posted)
			looks, posts = append(looks, b-a), append(posts, threadTime(t)-b)
		}}
	}})
	defer s.Close()
	err := readiness.Of(s).Open()
	require.NoError(t, err)
	s.Hold(1)
	require.NoError(t, s.Run())
	slices.Sort(posts)
	slices.Sort(looks)
	return float64(posts[n/2] - looks[n/2])
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
