package listener_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// twin is what a connection should be, the slow and obvious way: all that the peer will ever send, and
// how much of it was taken.
type twin struct {
	conn  *listener.Conn
	all   []byte
	taken int
	ended bool
	back  []byte // written, all of it
}

// loan is a lent slice and what was in it.
type loan struct{ lent, copy []byte }

// model is a task that does random things with many connections in each turn.
type model struct {
	t     *testing.T
	r     *rand.Rand
	twins []*twin
	loans []loan // of this turn
}

func (m *model) Act(t *act.Task) act.Directive {
	m.loans = m.loans[:0]
	t.Scheduler().AtTurnEnd(servertest.TurnEnd(m.check))
	progress, open := false, 0
	for _, w := range m.twins {
		for range m.r.IntN(6) {
			progress = m.step(w) || progress
		}
		if w.ended {
			continue
		}
		open++
		if _, err := w.conn.Peek(w.conn.Buffered() + 1); err == nil {
			progress = true
		} else if b, ok := err.(act.Blocked); ok {
			b.Arm(t)
		} else {
			progress = true
		}
	}
	m.check()
	switch {
	case open == 0:
		return act.Done
	case progress:
		return act.Yield
	}
	return act.Wait
}

// step does one thing and reports whether it was of use.
func (m *model) step(w *twin) bool {
	if w.ended {
		return false
	}
	n := []int{0, 1, 1, 2, m.r.IntN(50), m.r.IntN(5000)}[m.r.IntN(6)]
	in, err := w.conn.Peek(n)
	m.expect(w, in)
	switch {
	case err == nil:
		require.GreaterOrEqual(m.t, len(in), n)
	case err == io.EOF:
		require.Less(m.t, len(in), n)
		require.Equal(m.t, len(w.all), w.taken+len(in), "the end comes behind the last byte")
		w.ended = len(in) == 0
	default:
		require.Implements(m.t, (*act.Blocked)(nil), err)
		require.Less(m.t, len(in), n)
	}
	if len(in) == 0 {
		return false
	}
	k := []int{0, 1, len(in), m.r.IntN(len(in) + 1)}[m.r.IntN(4)]
	if m.r.IntN(2) == 0 {
		written, _ := w.conn.Write(in[:k]) // a Write that is Blocked takes less
		k = written
		w.back = append(w.back, in[:k]...)
	} else if m.r.IntN(4) == 0 {
		p := make([]byte, k)
		got, err := w.conn.Read(p)
		require.NoError(m.t, err)
		require.Equal(m.t, k, got)
		require.Equal(m.t, w.all[w.taken:w.taken+k], p)
		w.taken += k
		return k > 0
	}
	w.conn.Discard(k)
	w.taken += k
	return k > 0
}

func (m *model) expect(w *twin, in []byte) {
	require.Equal(m.t, string(w.all[w.taken:w.taken+len(in)]), string(in))
	m.loans = append(m.loans, loan{in, bytes.Clone(in)})
}

// check requires everything that was lent in this turn to be as it was.
func (m *model) check() {
	for _, l := range m.loans {
		require.Equal(m.t, string(l.copy), string(l.lent), "a loan is valid until the turn ends")
	}
}

// Random peers, random operations on 24 connections in the same turns, against a twin: every byte once and
// in order, and nothing that was lent changes in its turn.
func TestConnAgainstAModel(t *testing.T) {
	for round := range 3 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		l := servertest.New(t, act.Config{})
		m := &model{t: t, r: r}
		heard := make([]chan []byte, 24)
		for i := range heard {
			c, peer := l.Conn([]string{"tcp", "unix"}[i%2], listener.Limits{Read: 5000 + i*1000, High: 8 << 10})
			all := make([]byte, r.IntN(60_000))
			for at := range all {
				all[at] = byte(at*7 + at>>8*11 + i)
			}
			m.twins = append(m.twins, &twin{conn: c, all: all})
			go chunks(peer, all, r.Uint64())
			heard[i] = make(chan []byte, 1)
			go func() {
				back, _ := io.ReadAll(peer)
				heard[i] <- back
			}()
		}
		o := spawn(l.S, m)
		require.Equal(t, act.Done, o.over(l))
		for i, w := range m.twins {
			require.Equal(t, len(w.all), w.taken)
			require.NoError(t, w.conn.Close())
			var back []byte
			l.Until("what was written is received", func() bool {
				select {
				case back = <-heard[i]:
					return true
				default:
					return false
				}
			})
			require.Equal(t, len(w.back), len(back))
			require.True(t, bytes.Equal(w.back, back))
		}
	}
}

// chunks sends all in random pieces with random pauses and ends its side.
func chunks(c net.Conn, all []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	for len(all) > 0 {
		n := min(len(all), []int{1, 1 + r.IntN(10), 1 + r.IntN(1000), 1 + r.IntN(20_000)}[r.IntN(4)])
		if _, err := c.Write(all[:n]); err != nil {
			return
		}
		all = all[n:]
		if r.IntN(8) == 0 {
			time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
		}
	}
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
}

func TestPeekReceivesOnlyWhatIsMissing(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "hello")
	readable(l, c, 5)
	l.OS.Forget()
	l.Turn(func(*act.Task) {
		for n := -1; n <= 5; n++ {
			in, err := c.Peek(n)
			require.NoError(t, err)
			require.Equal(t, "hello", string(in), "all that is unread")
		}
		require.Zero(t, l.OS.Count("receive"))
		in, err := c.Peek(6)
		require.Implements(t, (*act.Blocked)(nil), err)
		require.Equal(t, "hello", string(in), "what is there comes with the error")
		require.EqualError(t, err, "listener: nothing to read yet")
	})
	require.Equal(t, 5, c.Buffered())
}

func TestLoansStayValidInTheirTurn(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "first")
	readable(l, c, 5) // the connection's own by now
	l.Turn(func(*act.Task) {
		own, err := c.Peek(1)
		require.NoError(t, err)
		c.Discard(5)
		servertest.Send(t, peer, "second")
		var lent []byte
		for len(lent) == 0 {
			l.Engine().Idle(time.Millisecond)
			lent, _ = c.Peek(6)
		}
		servertest.Send(t, peer, strings.Repeat("third", 2000))
		var more []byte
		for len(more) < 10_006 {
			l.Engine().Idle(time.Millisecond)
			more, _ = c.Peek(10_006) // moves to a larger buffer, perhaps twice
		}
		c.Discard(6)
		require.Equal(t, "first", string(own))
		require.Equal(t, "second", string(lent))
		require.Equal(t, "secondthird", string(more[:11]))
	})
	l.Turn(func(*act.Task) {
		in, err := c.Peek(10_000)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("third", 2000), string(in))
	})
}

// What was broken: the buffer of a connection that only handed out what it had kept went back to the
// others at once when it was closed, while its bytes were still lent.
func TestALoanOutlivesTheConnectionsCloseInItsTurn(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a, peerA := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
	b, peerB := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
	l.Turn(func(*act.Task) { require.NoError(t, b.SetDeadline(time.Now().Add(time.Hour))) }) // takes memory from the stock
	servertest.Send(t, peerA, "from one to the other")
	readable(l, a, 21)
	l.Turn(func(*act.Task) { a.Discard(5) })
	l.Turn(func(*act.Task) {
		in, err := a.Peek(1)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = b.WriteString("= ")
		require.NoError(t, err)
		require.Equal(t, "one to the other", string(in))
		_, err = b.Write(in)
		require.NoError(t, err)
	})
	servertest.Expect(t, peerB, "= one to the other")
	b.Abort()
}

// What was broken: a connection that only took what it had kept was not looked at when the turn ended.
func TestAConnectionThatHasTakenEverythingHoldsNoBuffer(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "hello")
	readable(l, c, 5)
	require.Equal(t, listener.Gathered, listener.Memory(c))
	l.Turn(func(*act.Task) { c.Discard(5) })
	require.True(t, listener.AtRest(c))
}

// What was broken: with a deadline, which idle connections of a server have, it kept the buffer of what it had written.
func TestAnIdleConnectionWithADeadlineHoldsNoBuffer(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	l.Turn(func(*act.Task) {
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Hour)))
		_, err := c.WriteString("hello")
		require.NoError(t, err)
	})
	servertest.Expect(t, peer, "hello")
	require.Zero(t, listener.Memory(c))
}

func TestReadIsBounded(t *testing.T) {
	const limit = 1000
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{Read: limit})
	defer c.Abort()
	servertest.Send(t, peer, strings.Repeat("x", 10*limit))
	readable(l, c, limit)
	require.Equal(t, limit, c.Buffered())
	l.Turn(func(*act.Task) {
		in, err := c.Peek(limit + 1)
		require.Equal(t, listener.ErrTooLong, err)
		require.Len(t, in, limit, "what is there comes with the error")
		_, err = c.Peek(limit)
		require.NoError(t, err, "within the limit all is well")
	})
	require.Equal(t, limit, c.Buffered(), "and no more was received")
	total := 0
	l.Until("all", func() bool {
		l.Turn(func(*act.Task) {
			in, _ := c.Peek(1)
			require.LessOrEqual(t, len(in), limit)
			total += len(in)
			c.Discard(len(in))
		})
		return total == 10*limit
	})
}

// What was broken: a peer that announced a megabyte and sent the length alone cost a megabyte.
func TestPeekTakesMemoryForWhatHasArrivedAndNotForWhatIsAskedFor(t *testing.T) {
	const announced = 1 << 20
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{Read: announced})
	defer c.Abort()
	for sent, part := 0, 5; sent < announced; part = min(8*part, announced-sent) {
		servertest.Send(t, peer, strings.Repeat("x", part))
		sent += part
		l.Until("it has arrived", func() bool {
			l.Turn(func(*act.Task) { _, _ = c.Peek(announced) })
			return c.Buffered() == sent
		})
		require.LessOrEqual(t, listener.Memory(c), max(2*sent, listener.Gathered))
	}
	l.Turn(func(*act.Task) {
		in, err := c.Peek(announced)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("x", announced), string(in))
	})
}

func TestDiscardOfMoreThanIsUnreadPanics(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	require.Panics(t, func() { c.Discard(1) })
	servertest.Send(t, peer, "abc")
	readable(l, c, 3)
	require.Panics(t, func() { c.Discard(4) })
	require.Panics(t, func() { c.Discard(-1) })
	c.Discard(0)
	c.Discard(3)
	c.Abort()
	c.Discard(5) // of a closed one nothing is left
}

func TestTheEndComesBehindTheLastBytesAndStays(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn(network, listener.Limits{})
		servertest.Send(t, peer, "last")
		require.NoError(t, peer.(interface{ CloseWrite() error }).CloseWrite())
		readable(l, c, 4)
		for range 2 {
			l.Until("the end", func() bool {
				var in []byte
				var err error
				l.Turn(func(*act.Task) { in, err = c.Peek(5) })
				require.Equal(t, "last", string(in))
				return err == io.EOF
			})
		}
		l.Turn(func(*act.Task) {
			c.Discard(4)
			for range 2 {
				in, err := c.Peek(1)
				require.Empty(t, in)
				require.Equal(t, io.EOF, err)
			}
			n, err := c.WriteString("answer") // the other way is open
			require.NoError(t, err)
			require.Equal(t, 6, n)
		})
		servertest.Expect(t, peer, "answer")
		c.Abort()
	}
}

// Also behind what was kept: the buffer may have more room than the limit allows.
func TestReadIsBoundedBehindWhatWasKept(t *testing.T) {
	const limit = 1000
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{Read: limit})
	defer c.Abort()
	servertest.Send(t, peer, "x")
	readable(l, c, 1)
	require.Greater(t, listener.Memory(c), limit)
	servertest.Send(t, peer, strings.Repeat("x", 2*limit))
	readable(l, c, limit)
	require.Equal(t, limit, c.Buffered())
}
