package listener_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// life is a connection from its making to its end, and what is known of it.
type life struct {
	c       *listener.Conn
	says    []byte // the peer will
	taken   int
	written []byte // accepted by Write
	heard   chan []byte
	late    bool // its deadlines have passed
	ended   bool // CloseWrite
	over    bool // Close or Abort
	aborted bool
}

// lives is a task in whose turns anything may happen to any connection, even when the turn is ending.
type lives struct {
	t     *testing.T
	r     *rand.Rand
	now   []*life
	past  []*life
	loans []loan
	turns int
}

func (m *lives) Act(t *act.Task) act.Directive {
	m.loans = m.loans[:0]
	t.Scheduler().Internals().AtTurnEnd(servertest.TurnEnd(m.check))
	for range m.r.IntN(12) {
		m.happen(m.now[m.r.IntN(len(m.now))])
	}
	if m.r.IntN(3) == 0 {
		t.Scheduler().Internals().AtTurnEnd(servertest.TurnEnd(func() { m.happen(m.now[m.r.IntN(len(m.now))]) }))
	}
	m.check()
	if m.turns--; m.turns <= 0 {
		return act.Done
	}
	return act.Yield
}

func (m *lives) check() {
	for _, l := range m.loans {
		require.Equal(m.t, string(l.copy), string(l.lent), "a loan is valid until the turn ends")
	}
}

// happen has one thing happen to w.
func (m *lives) happen(w *life) {
	switch n := m.r.IntN(40); {
	case n < 11:
		m.peek(w, []int{0, 1, m.r.IntN(100), m.r.IntN(8000)}[m.r.IntN(4)])
	case n < 14:
		m.read(w, 1+m.r.IntN(10_000))
	case n < 26:
		m.write(w, []int{0, 1, m.r.IntN(100), m.r.IntN(9000)}[m.r.IntN(4)])
	case n < 29:
		m.deadline(w)
	case n < 31:
		m.expect(w, w.c.Flush())
	case n < 32:
		m.expect(w, w.c.CloseWrite())
		w.ended = true
	case n < 33:
		require.NoError(m.t, w.c.Close())
		w.over = true
	case n < 34:
		w.aborted = w.aborted || !w.over
		w.c.Abort()
		w.over = true
	}
}

// expect requires a call on w to report that it is over, or nothing.
func (m *lives) expect(w *life, err error) {
	if w.over {
		require.Equal(m.t, net.ErrClosed, err)
	} else {
		require.NoError(m.t, err)
	}
}

func (m *lives) peek(w *life, n int) {
	in, err := w.c.Peek(n)
	if w.over {
		require.Equal(m.t, net.ErrClosed, err)
		require.Empty(m.t, in)
		return
	}
	require.Equal(m.t, string(w.says[w.taken:w.taken+len(in)]), string(in))
	require.Equal(m.t, len(in), cap(in), "an append must not reach what comes behind")
	m.loans = append(m.loans, loan{in, bytes.Clone(in)})
	switch {
	case len(in) >= n:
		require.NoError(m.t, err)
	case n > 6000:
		require.Equal(m.t, listener.ErrTooLong, err)
	case w.late:
		require.ErrorIs(m.t, err, os.ErrDeadlineExceeded)
	case err == io.EOF:
		require.Equal(m.t, len(w.says), w.taken+len(in))
	default:
		require.Implements(m.t, (*act.Blocked)(nil), err)
	}
	k := []int{0, len(in), m.r.IntN(len(in) + 1)}[m.r.IntN(3)]
	w.c.Discard(k)
	w.taken += k
}

// read reads into a buffer of n bytes, which may be more than Peek would lend.
func (m *lives) read(w *life, n int) {
	p := make([]byte, n)
	unread := w.c.Buffered()
	k, err := w.c.Read(p)
	require.Equal(m.t, string(w.says[w.taken:w.taken+k]), string(p[:k]))
	w.taken += k
	switch {
	case w.over:
		require.Equal(m.t, net.ErrClosed, err)
	case k > 0:
		require.NoError(m.t, err)
		require.True(m.t, unread > 0 || !w.late, "nothing is received after the deadline")
	case w.late:
		require.ErrorIs(m.t, err, os.ErrDeadlineExceeded)
	case err == io.EOF:
		require.Len(m.t, w.says, w.taken)
	default:
		require.Implements(m.t, (*act.Blocked)(nil), err)
	}
}

func (m *lives) write(w *life, n int) {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(m.r.Uint32())
	}
	k, err := w.c.Write(p)
	w.written = append(w.written, p[:k]...)
	clear(p) // it was copied
	switch {
	case w.over:
		require.Equal(m.t, net.ErrClosed, err)
	case w.ended:
		require.EqualError(m.t, err, "monitor: the write side was closed")
	case w.late:
		require.ErrorIs(m.t, err, os.ErrDeadlineExceeded)
	case k < n:
		require.Implements(m.t, (*act.Blocked)(nil), err)
		return
	default:
		require.NoError(m.t, err)
		return
	}
	require.Zero(m.t, k)
}

func (m *lives) deadline(w *life) {
	at := []time.Time{{}, time.Now(), time.Now().Add(time.Hour)}[m.r.IntN(3)]
	m.expect(w, w.c.SetDeadline(at))
	w.late = !at.IsZero() && at.Before(time.Now().Add(time.Minute))
}

// born makes a connection whose peer sends in pieces, and receives all.
func (m *lives) born(l *servertest.Stepped) *life {
	w := &life{says: make([]byte, m.r.IntN(40_000)), heard: make(chan []byte, 1)}
	for i := range w.says {
		w.says[i] = byte(i*7 + i>>8*13 + len(w.says))
	}
	c, peer := l.Conn([]string{"tcp", "unix"}[m.r.IntN(2)], listener.Limits{Read: 6000, High: 10_000})
	w.c = c
	seed, said := m.r.Uint64(), make(chan struct{})
	go func() {
		defer close(said)
		chunks(peer, w.says, seed)
	}()
	go func() {
		all, _ := io.ReadAll(peer)
		<-said
		_ = peer.Close()
		w.heard <- all
	}()
	return w
}

// Connections come and go, in the middle of turns and at their ends, with deadlines and without: what one
// gives back another uses, and two never use the same. A connection that was closed has delivered all.
func TestRandomCallsOnConnections(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		l := servertest.New(t, act.Config{})
		m := &lives{t: t, r: rand.New(rand.NewPCG(seed, 0))}
		for range 10 {
			m.now = append(m.now, m.born(l))
		}
		for range 150 {
			m.turns = 4
			require.Equal(t, act.Done, spawn(l.S, m).over(l))
			require.NoError(t, m.sound(l), "seed %d", seed)
			for i, w := range m.now {
				if w.over && m.r.IntN(4) == 0 {
					m.past = append(m.past, w)
					m.now[i] = m.born(l)
				}
			}
		}
		for _, w := range m.now {
			_ = w.c.Close()
			w.over = true
		}
		for i, w := range slices.Concat(m.past, m.now) {
			var heard []byte
			l.Until("a peer has received all", func() bool {
				select {
				case heard = <-w.heard:
					return true
				default:
					return false
				}
			})
			if w.aborted {
				require.True(t, bytes.HasPrefix(w.written, heard), "connection %d, seed %d", i, seed)
			} else {
				require.True(t, bytes.Equal(w.written, heard), "connection %d, seed %d: %d of %d", i, seed, len(heard), len(w.written))
			}
		}
		require.NoError(t, l.S.Run(), "and nothing lingers for ever")
		require.NoError(t, m.sound(l), "seed %d", seed)
	}
}

func (m *lives) sound(l *servertest.Stepped) error {
	var conns []*listener.Conn
	for _, w := range m.now {
		conns = append(conns, w.c)
	}
	return errors.Join(listener.Sound(l.S, conns))
}
