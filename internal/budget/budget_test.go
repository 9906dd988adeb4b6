package budget

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
)

// bed is a budget of 1000 bytes, with connections that have names.
type bed struct {
	t     *testing.T
	now   time.Duration
	s     *act.Scheduler
	b     *Budget
	logs  *observer.ObservedLogs
	conns []*conn
}

func (x *bed) Monotonic() time.Duration { return x.now }
func (*bed) Wall() time.Time            { return time.Unix(0, 0) }

func newBed(t *testing.T) *bed {
	core, logs := observer.New(zapcore.DebugLevel)
	x := &bed{t: t, now: time.Hour, logs: logs}
	x.s = act.New(act.Config{Clock: x, Logger: zap.New(core)})
	x.s.Internals().KeepRunning(1) // or it ends, and its timers with it
	t.Cleanup(func() {
		x.s.Internals().KeepRunning(-1)
		require.NoError(t, x.s.Close())
	})
	x.b = Of(x.s)
	x.b.Bound(1000)
	return x
}

// conn is an Owner.
type conn struct {
	x       *bed
	name    string
	account [2]Account
	moved   time.Duration // when a byte has gone
	refers  []*Message
	waits   int // bytes that Flush sends
	aborted bool
}

func (c *conn) Held() (int, time.Duration) {
	n := c.account[0].Bytes() + c.account[1].Bytes()
	for _, m := range c.refers {
		n += m.Part()
	}
	return n, c.x.now - c.moved
}

func (c *conn) Flush() error {
	if c.waits > 0 {
		c.x.b.Set(&c.account[0], c.account[0].Bytes()-c.waits)
		c.waits, c.moved = 0, c.x.now
	}
	return nil
}

func (c *conn) Abort() {
	c.aborted = true
	c.x.b.Set(&c.account[0], 0)
	c.x.b.Set(&c.account[1], 0)
	for _, m := range c.refers {
		c.x.b.Forget(m)
	}
	c.refers = nil
}

func (c *conn) Peer() string { return c.name }

// holds is a connection that holds bytes from now on, of which some in another account.
func (x *bed) holds(name string, bytes, more int) *conn {
	c := &conn{x: x, name: name, moved: x.now}
	c.account[0].Owner, c.account[1].Owner = c, c
	x.conns = append(x.conns, c)
	x.turn(func() {
		x.b.Set(&c.account[0], bytes)
		x.b.Set(&c.account[1], more)
	})
	return c
}

func (x *bed) turn(f func()) {
	x.s.Spawn(act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	}))
	x.steps()
}

func (x *bed) steps() {
	for n := 1; n > 0; {
		var err error
		n, err = x.s.Step(1)
		require.NoError(x.t, err)
	}
}

// after lets time pass in steps of 100 ms, in each of which a byte goes on the connections that move.
func (x *bed) after(d time.Duration, move ...*conn) {
	for end := x.now + d; x.now < end; {
		x.now += 100 * time.Millisecond
		for _, c := range move {
			c.moved = x.now
		}
		x.steps()
	}
}

func (x *bed) evicted() (names string) {
	for _, c := range x.conns {
		if c.aborted {
			names += c.name
		}
	}
	return names
}

func (x *bed) count(name string) (n uint64) {
	x.b.Counts(func(of string, is uint64) {
		if of == name {
			n = is
		}
	})
	return n
}

func TestAPauseEndsBelowSevenEighths(t *testing.T) {
	x := newBed(t)
	a, b := x.holds("a", 500, 0), x.holds("b", 499, 0)
	require.False(t, x.b.Paused())
	c := x.holds("c", 1, 0)
	require.True(t, x.b.Paused(), "it is reached")
	woken := false
	x.s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if woken = !x.b.Paused(); woken {
			return act.Done
		}
		x.b.Await(t.Waker(), nil, true)
		return act.Wait
	}))
	x.steps()
	x.turn(func() { x.b.Set(&b.account[0], 374) })
	require.True(t, x.b.Paused(), "with 7/8")
	require.False(t, woken)
	x.turn(func() { x.b.Set(&c.account[0], 0) })
	require.False(t, x.b.Paused(), "with less")
	require.True(t, woken)
	require.EqualValues(t, 1, x.count("reading_pauses_total"))
	require.EqualValues(t, 874, x.count("held_bytes"))
	require.EqualValues(t, 1000, x.count("held_bytes_max"))
	x.after(10 * time.Second)
	require.False(t, a.aborted, "without a pause nothing is evicted")
}

// After each poll 64 may read, once: the known ones, and then the others, in their order. It does not matter that the pause ends
// and begins again with each of them.
func TestThoseThatWaitReadInTurn(t *testing.T) {
	x := newBed(t)
	live := x.holds("live", 1000, 0)
	var read []string
	for i := range 100 {
		c := &conn{x: x, name: fmt.Sprint(i)}
		x.s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if x.b.Admit(c) {
				read = append(read, c.name)
				x.b.Set(&live.account[0], 0)
				x.b.Set(&live.account[0], 1000)
				return act.Done
			}
			x.b.Await(t.Waker(), c, i%2 == 0)
			return act.Wait
		}))
	}
	x.steps()
	require.Empty(t, read)
	x.after(100*time.Millisecond, live)
	require.Len(t, read, 64)
	require.Equal(t, []string{"1", "3", "5"}, read[:3])
	require.Equal(t, []string{"97", "99", "0", "2"}, read[48:52])
	x.after(100*time.Millisecond, live)
	require.Len(t, read, 100)
	require.Empty(t, x.b.admitted)
}

// A peer that has taken something, of which the kernel has not reported yet, is spared.
func TestWhatCanBeSentIsSentBefore(t *testing.T) {
	x := newBed(t)
	a := x.holds("a", 990, 0)
	x.holds("b", 10, 0)
	a.waits = 100
	x.after(1200 * time.Millisecond)
	require.Equal(t, "b", x.evicted())
	x.after(time.Second)
	require.Equal(t, "ab", x.evicted())
}

// A crowd of small ones is evicted in parts, each in a pass of its own.
func TestACrowdIsEvictedInParts(t *testing.T) {
	x := newBed(t)
	x.b.Bound(10_000)
	for i := range 10_000 {
		x.holds(fmt.Sprint(i), 1, 0)
	}
	x.now += 1100 * time.Millisecond
	for parts := 0; x.b.Paused(); parts++ {
		before := x.b.Total()
		x.now++
		x.steps()
		require.LessOrEqual(t, before-x.b.Total(), batch)
		require.Less(t, parts, 100)
	}
	require.Equal(t, 8749, x.b.Total())
	require.Equal(t, uint64(1251), x.count("connections_evicted_total"))
	require.Equal(t, uint64(1251), x.count("evicted_bytes_total"))

	x.after(5 * time.Second)
	all := x.logs.FilterMessageSnippet("connections were evicted").All()
	require.Len(t, all, 1, "a line for a second")
	fields := all[0].ContextMap()
	require.EqualValues(t, 1251, fields["in a second"])
	require.EqualValues(t, 1, fields["its bytes"])
	require.True(t, slices.ContainsFunc(x.conns, func(c *conn) bool { return c.aborted && c.name == fields["the largest"] }))
}

// A message that a crowd refers to counts once, and the crowd is not evicted for it.
func TestASharedMessageCountsOnce(t *testing.T) {
	x := newBed(t)
	refer := func(c *conn, p []byte) { x.turn(func() { c.refers = append(c.refers, x.b.Refer(p)) }) }
	news, rest := make([]byte, 500), make([]byte, 400)
	for i := range 100 {
		c := x.holds(fmt.Sprint(i), 1, 0)
		refer(c, news[100-i:]) // what is left when a part was sent
		refer(c, news)
	}
	require.Equal(t, 100+500, x.b.Total())
	refer(x.holds("own", 1, 0), rest)
	require.True(t, x.b.Paused())
	x.now += 1100 * time.Millisecond
	x.steps()
	require.Equal(t, "own", x.evicted())
	require.Equal(t, 100+500, x.b.Total())
	for _, c := range x.conns[:100] {
		c.Abort()
	}
	require.Zero(t, x.b.Total())
	require.Empty(t, x.b.messages)
}

func TestNoBound(t *testing.T) {
	x := newBed(t)
	x.b.Bound(-1)
	x.holds("a", 1<<30, 0)
	require.False(t, x.b.Paused())
	require.Zero(t, x.count("held_bytes_max"))
	require.Positive(t, standard(), "there is a default")
}
