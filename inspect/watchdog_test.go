package inspect

import (
	"encoding/json"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// clocked is a watchdog whose polls a test makes, with schedulers that are nothing but their words.
type clocked struct {
	*watchdog
	now  time.Time
	logs *observer.ObservedLogs
}

func newClocked(t *testing.T, w Watch) *clocked {
	core, logs := observer.New(zap.InfoLevel)
	d := newWatchdog(w, nil, zap.New(core))
	t.Cleanup(d.close)
	return &clocked{d, time.Now(), logs}
}

func (c *clocked) scheduler() *watched {
	w := newWatched("none has this name")
	c.watch(w, len(c.seen))
	return w
}

// polls n times, a tick after the other.
func (c *clocked) polls(n int) {
	for range n {
		c.now = c.now.Add(c.tick)
		c.poll(c.now)
	}
}

// lines returns what was logged since the call before.
func (c *clocked) lines() (all []string) {
	for _, line := range c.logs.TakeAll() {
		all = append(all, line.Message)
	}
	return all
}

func TestAStallIsReportedOnceAndAgainAfterASecondAndItsEnd(t *testing.T) {
	var called []stall
	c := newClocked(t, Watch{Then: 2 * time.Second, Stalled: func(text json.RawMessage) {
		var s stall
		require.NoError(t, json.Unmarshal(text, &s))
		called = append(called, s)
	}})
	w := c.scheduler()
	w.turn(one, 7, -1)
	c.polls(2)
	require.Empty(t, c.lines(), "it has lasted 25 ms, as far as is known")
	c.polls(1)
	require.Equal(t, []string{"a turn holds up its scheduler"}, c.lines())
	s := c.stalls().Last[0]
	require.Equal(t, "one", s.Kind)
	require.EqualValues(t, 7, s.Task)
	require.Equal(t, 50*time.Millisecond+c.tick/2, s.Lasted)
	require.WithinDuration(t, c.now.Add(-s.Lasted), s.Began, 0)
	require.False(t, s.Ended)

	c.polls(37)
	require.Empty(t, c.lines())
	c.polls(1)
	require.Equal(t, []string{"a turn still holds up its scheduler"}, c.lines())
	c.polls(39)
	require.Empty(t, called)
	c.polls(1)
	require.Len(t, called, 1)
	require.Equal(t, 2*time.Second+c.tick/2, called[0].Lasted)
	c.polls(100)
	require.Len(t, called, 1)
	require.Empty(t, c.lines())

	w.turn(one, 7, -1)
	c.polls(1)
	require.Equal(t, []string{"a turn that held up its scheduler has ended"}, c.lines())
	all := c.stalls()
	require.Len(t, all.Last, 1)
	require.True(t, all.Last[0].Ended)
	require.Equal(t, 181*c.tick, all.Last[0].Lasted)
	require.EqualValues(t, 1, all.Durations.count())
	require.Equal(t, 181*c.tick, all.Durations.Max)
	require.EqualValues(t, 2, all.Reported)
	require.Zero(t, all.Late)
}

func TestWhatIsNoStall(t *testing.T) {
	for _, row := range []struct {
		name string
		tick func(w *watched, i int)
	}{
		{"short turns of one task", func(w *watched, _ int) { w.turn(zero, 1, -1) }},
		{"turns that take a little less than the limit", func(w *watched, i int) {
			if i%2 == 0 {
				w.turn(zero, 1, -1)
			}
		}},
		{"passes", func(w *watched, _ int) { w.pass(0) }},
		{"a long sleep", func(w *watched, i int) {
			if i == 0 {
				w.asleep(0)
			}
		}},
		{"outside of Run", func(w *watched, i int) {
			if i == 0 {
				w.turn(zero, 1, -1)
				w.Untie()
			}
		}},
		{"before Run", func(*watched, int) {}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newClocked(t, Watch{})
			w := c.scheduler()
			for i := range 1000 {
				row.tick(w, i)
				c.polls(1)
			}
			require.Empty(t, c.lines())
			require.Equal(t, stalls{Last: []stall{}}, c.stalls())
		})
	}
}

func TestTooManyStallsAreCounted(t *testing.T) {
	c := newClocked(t, Watch{})
	w := c.scheduler()
	stall := func() {
		w.turn(zero, 1, -1)
		c.polls(3)
		w.asleep(0)
		c.polls(1)
	}
	for range burst + 5 {
		stall()
	}
	all := c.stalls()
	require.EqualValues(t, burst, all.Reported)
	require.EqualValues(t, 5, all.Suppressed)
	require.Len(t, all.Last, burst)
	require.EqualValues(t, burst+5, all.Durations.count())
	require.Len(t, c.lines(), 2*burst, "the begin and the end of those that were reported")

	w.turn(zero, 1, -1)
	c.polls(1 + int(refill/c.tick)) // it goes on, so it has a line after a second
	require.EqualValues(t, burst+1, c.stalls().Reported)
	stall()
	require.EqualValues(t, burst+2, c.stalls().Reported, "there is room for another one")
	stall()
	require.EqualValues(t, 7, c.stalls().Suppressed)
}

func TestTheLatestStallsAreKept(t *testing.T) {
	var l ledger
	for i := range uint32(2 * remembered) {
		l.add(&stall{Task: i})
	}
	last := l.snapshot().Last
	require.Len(t, last, remembered)
	for i, s := range last {
		require.EqualValues(t, 2*remembered-1-i, s.Task)
	}
}

// A tick and ten seconds count for one tick.
func TestALateWatchdogSaysSo(t *testing.T) {
	c := newClocked(t, Watch{})
	w := c.scheduler()
	w.turn(zero, 1, -1)
	c.polls(1)
	for range 2 {
		require.Empty(t, c.lines())
		c.now = c.now.Add(10 * time.Second) // the machine was suspended
		c.polls(1)
	}
	require.Equal(t, []string{"a turn holds up its scheduler"}, c.lines(), "it was seen for 50 ms")
	all := c.stalls()
	require.EqualValues(t, 2, all.Late)
	require.InDelta(t, 10*time.Second, all.Latest, float64(time.Second))
}

func TestWhileAllSleepTheWatchdogLooksLessOften(t *testing.T) {
	c := newClocked(t, Watch{})
	first, other := c.scheduler(), c.scheduler()
	first.asleep(0)
	other.pass(0)
	c.polls(1)
	require.Equal(t, c.tick, c.next, "they were seen for the first time")
	other.asleep(0)
	c.polls(1)
	require.Equal(t, c.tick, c.next)
	c.polls(1)
	require.Equal(t, idleTicks*c.tick, c.next)
	first.turn(zero, 1, -1)
	c.now = c.now.Add((idleTicks - 1) * c.tick)
	c.polls(1)
	require.Equal(t, c.tick, c.next)
	c.polls(1)
	require.Empty(t, c.lines(), "the watchdog was not late, and nothing is known of the long time before")
	c.polls(1)
	require.Equal(t, []string{"a turn holds up its scheduler"}, c.lines())
}

func TestAStallHasThePeerOfItsConnection(t *testing.T) {
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listening.Close()
	client, err := net.Dial("tcp", listening.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	accepted, err := listening.Accept()
	require.NoError(t, err)
	defer accepted.Close()
	raw, err := accepted.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		c := newClocked(t, Watch{})
		c.scheduler().turn(zero, 1, int32(fd))
		c.polls(3)
		s := c.stalls().Last[0]
		require.Equal(t, client.LocalAddr().String(), s.Peer)
		line := c.logs.All()[0].ContextMap()
		require.Equal(t, s.Peer, line["peer"])
	}))
}

// newWatched returns a watched with two kinds, of these numbers.
func newWatched(name string) *watched {
	w := &watched{name: name}
	w.kindNumber("zero")
	w.kindNumber("one")
	return w
}

const zero, one = 1, 2

// The id, the descriptor and the kind of each turn agree, so a mixture of two turns would be seen.
func TestASightingIsNeverOfTwoTurns(t *testing.T) {
	w := newWatched("")
	var enough atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := uint32(0); !enough.Load(); i = (i + 1) % (1 << 20) {
			w.turn(zero+i%2, i, int32(i))
			if i%64 == 63 {
				w.pass(0)
				runtime.Gosched()
			}
		}
	})
	defer writer.Wait()
	defer enough.Store(true)
	for turns := 0; turns < 10_000; {
		if x := w.sight(); x.state() == turn {
			turns++
			require.Equal(t, int32(x.id), x.fd)
			require.Equal(t, []string{"zero", "one"}[x.id%2], x.kind)
		}
	}
}
