package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
)

// clock is a Clock that a test moves. To sleep moves it as well.
type clock struct{ now time.Duration }

func (c *clock) Monotonic() time.Duration { return c.now }
func (c *clock) Wall() time.Time          { return time.Unix(0, int64(c.now)) }
func (c *clock) Idle(atMost time.Duration) {
	c.now += max(atMost, 0)
}
func (*clock) Interrupt() {}

// inspected returns a scheduler that is inspected, on a clock of its own.
func inspected(t *testing.T) (*act.Scheduler, *Inspector, *clock) {
	x, c := &Inspector{}, &clock{}
	cfg := act.Config{Clock: c, Logger: zap.NewNop()}
	x.Configure(&cfg)
	s := act.New(cfg)
	t.Cleanup(func() { _ = s.Close() })
	s.Internals().SetIdler(c)
	require.NoError(t, x.Setup(s))
	return s, x, c
}

// reported returns what the probe of s knows.
func reported(s *act.Scheduler) *scheduler {
	r := &scheduler{Counts: map[string]uint64{}}
	probes.Get(s).reportTo(r)
	return r
}

func step(t *testing.T, s *act.Scheduler) {
	t.Helper()
	n, err := s.Step(100_000)
	require.NoError(t, err)
	require.Less(t, n, 100_000)
}

// turns is a task of so many turns, each of which takes a millisecond.
type turns struct {
	left int
	c    *clock
}

func (x *turns) Act(*act.Task) act.Directive {
	x.c.now += time.Millisecond
	if x.left--; x.left == 0 {
		return act.Done
	}
	return act.Yield
}

func kindNamed(t *testing.T, r *scheduler, name string) kindRow {
	for _, k := range r.Kinds {
		if k.Name == name {
			return k
		}
	}
	require.Fail(t, "no kind "+name)
	return kindRow{}
}

// One turn in 64 is timed, and one wake-up in 64 until its turn has begun.
func TestAProbeTimesOneIn64(t *testing.T) {
	s, _, c := inspected(t)
	s.Spawn(&turns{640, c})
	step(t, s)
	r := reported(s)
	require.EqualValues(t, 10, r.Turns.count())
	require.Equal(t, 10*time.Millisecond, r.Turns.Sum)

	var woken [2]act.Waker
	for i := range woken {
		s.Spawn(act.Func(func(x *act.Task) act.Directive {
			c.now += time.Millisecond
			woken[i] = x.Waker()
			return act.Wait
		}))
	}
	for range 64 {
		step(t, s)
		woken[0].Wake()
		woken[1].Wake()
	}
	step(t, s)
	r = reported(s)
	require.EqualValues(t, 2, r.Wakes.count())
	require.Equal(t, 2*time.Millisecond, r.Wakes.Sum, "the second of two has waited for the turn of the first")
}

// poller is an Idler under which a poll takes a second of the clock, and a sleep as long as it may.
type poller struct{ *clock }

func (l poller) Idle(atMost time.Duration) {
	if atMost == 0 {
		l.now += time.Second
		return
	}
	l.clock.Idle(atMost)
}

func TestIdleTimeIsDividedByStrategy(t *testing.T) {
	for name, want := range map[string]struct {
		idle   idleTime
		sleeps uint64
	}{
		"interrupt": {idleTime{Asleep: time.Minute}, 1},
		"hybrid":    {idleTime{Asleep: 55 * time.Second, Polling: 5 * time.Second}, 1},
		"busy":      {idleTime{Polling: time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x, c := &Inspector{}, &clock{}
			cfg := act.Config{Clock: c, Logger: zap.NewNop(), Idle: map[string]act.Strategy{
				"hybrid": demon.Hybrid(5 * time.Second), "busy": demon.Busy(),
			}[name]}
			x.Configure(&cfg)
			s := act.New(cfg)
			defer func() { require.NoError(t, s.Close()) }()
			s.Internals().SetIdler(poller{c})
			require.NoError(t, x.Setup(s))
			var tm act.Timer
			begun := false
			s.Spawn(act.Func(func(x *act.Task) act.Directive {
				if begun {
					return act.Done
				}
				begun = true
				x.WakeAfter(&tm, time.Minute)
				return act.Wait
			}))
			require.NoError(t, s.Run())
			r := reported(s)
			require.Equal(t, want.idle, r.Idle)
			require.Equal(t, want.sleeps, r.Counts["sleeps_total"])
			require.Equal(t, c.now, r.Uptime)
			require.Equal(t, "not running", probes.Get(s).state())
		})
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	require.Zero(t, h.quantile(0.99))
	for _, d := range []time.Duration{0, 1023, 1024, time.Hour} {
		h.add(d)
	}
	require.EqualValues(t, 2, h.Buckets[0])
	require.EqualValues(t, 1, h.Buckets[1])
	require.EqualValues(t, 1, h.Buckets[buckets-1])
	require.EqualValues(t, 4, h.count())
	require.Equal(t, 1024*time.Nanosecond, h.quantile(0.5))
	require.Equal(t, 2048*time.Nanosecond, h.quantile(0.75))
	require.Equal(t, time.Hour, h.quantile(1))
}

// partner wakes the other one and waits.
type partner struct {
	waker act.Waker
	other *partner
}

func (p *partner) Act(t *act.Task) act.Directive {
	p.waker = t.Waker()
	p.other.waker.Wake()
	return act.Wait
}

// Counting and timing allocate nothing: neither turns and wake-ups of 128 tasks, nor a sleep.
func TestAProbeAllocatesNothing(t *testing.T) {
	s, _, c := inspected(t)
	p := probes.Get(s)
	for range 64 {
		a := new(partner)
		a.other = &partner{other: a}
		s.Spawn(a)
		s.Spawn(a.other)
	}
	_, err := s.Step(1000)
	require.NoError(t, err)
	before := reported(s)
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = s.Step(1000) }))
	after := reported(s)
	require.EqualValues(t, 11_000, kindNamed(t, after, "*inspect.partner").Turns-kindNamed(t, before, "*inspect.partner").Turns)
	require.Greater(t, after.Counts["woken_total"], before.Counts["woken_total"])
	require.Greater(t, after.Turns.count(), before.Turns.count(), "some were timed")
	require.Greater(t, after.Wakes.count(), before.Wakes.count(), "some were timed")

	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.idleBegin(time.Second)
		c.now += time.Second
		p.goOn()
		p.passBegin()
	}))
	require.Greater(t, reported(s).Counts["sleeps_total"], before.Counts["sleeps_total"])
}

// A descriptor is asked for in a task's first turn, until there is one, and again in each turn that is timed.
func TestTheDescriptorOfATaskIsAskedForNowAndThen(t *testing.T) {
	s, _, _ := inspected(t)
	x := &plugged{fd: -1}
	s.Spawn(x)
	turns := func(n int) {
		_, err := s.Step(n)
		require.NoError(t, err)
	}
	turns(100)
	require.Equal(t, 99, x.asked, "one was the desk's")
	x.fd = 7
	turns(1)
	require.EqualValues(t, 7, probes.Get(s).present.fd())
	x.asked, x.fd = 0, 8
	turns(10 * sampled)
	require.Equal(t, 10, x.asked)
	require.EqualValues(t, 8, probes.Get(s).present.fd())
}

// plugged always yields, and has a descriptor.
type plugged struct{ fd, asked int }

func (*plugged) Act(*act.Task) act.Directive { return act.Yield }

func (*plugged) Peer() string         { return "" }
func (*plugged) Still() time.Duration { return -1 }
func (*plugged) Undisturbed() bool    { return false }
func (x *plugged) Descriptor() int {
	x.asked++
	return x.fd
}
