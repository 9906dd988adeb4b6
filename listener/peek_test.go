package listener_test

import (
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// loan is a lent slice and what was in it.
type loan struct{ lent, copy []byte }

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
