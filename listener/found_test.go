package listener_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// What was broken: a deadline of now was later than the pass's reading of the clock, and the turn that set
// it went on receiving and writing.
func TestADeadlineOfNowHoldsInTheTurnThatSetsIt(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "here by now")
	l.For(0)
	l.Turn(func(*act.Task) {
		time.Sleep(2 * time.Millisecond) // a turn takes time, and its clock stands still
		require.NoError(t, c.SetDeadline(time.Now()))
		_, err := c.Peek(1)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = c.WriteString("too late")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetDeadline(time.Time{}))
		_, err = c.Peek(1)
		require.NoError(t, err)
	})
}

// What was broken: with all places taken no task waited for the acceptor, and its end was seen only when a
// place became free.
func TestClosingAnAcceptorAtTheLimitFailsAccept(t *testing.T) {
	for name, backlog := range map[string]int{"an empty backlog": 0, "clients in the backlog": 2} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			a := door(l, monitor.NewConnLimiter(1))
			o, conns := acceptAll(l, a)
			servertest.Dial(t, a.From.Addr())
			l.Until("the only place is taken", func() bool { return len(*conns) == 1 })
			for range backlog {
				servertest.Dial(t, a.From.Addr())
			}
			l.For(0)
			turns := o.turns
			l.For(0)
			require.Equal(t, turns, o.turns, "it does not spin")
			require.NoError(t, a.From.Close())
			require.Equal(t, act.Failed, o.over(l))
			require.ErrorIs(t, o.err, net.ErrClosed)
			require.EqualError(t, o.err, "listener: accept: use of closed network connection")
			require.Equal(t, 1, a.places.Open(), "the place is that of the connection")
		})
	}
}

// What was broken: the panic came when the connection stood, and its descriptor stayed open.
func TestAConnectWithBadLimitsPanicsBeforeThereIsADescriptor(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c := &listener.Connect{Address: listenAndGreet(t, "tcp", "127.0.0.1:0").String(), Limits: listener.Limits{Read: -1}}
	l.Turn(func(task *act.Task) {
		require.PanicsWithValue(t, "listener: Limits with a negative bound: {Read:-1 High:0 Low:0 Overflow:0 Linger:0s ReceiveBuffer:0 SendBuffer:0 Conns:0}",
			func() { c.Act(task) })
	})
	require.Zero(t, l.OS.Count("add"))
}

// What was broken: an append to a line, as for an answer, wrote over the line behind it.
func TestAppendToPeekedBytesCopies(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "one\r\ntwo\nthree")
	readable(l, c, 14)
	line := &listener.Line{Conn: c}
	l.Turn(func(*act.Task) {
		one, err := line.Read()
		require.NoError(t, err)
		require.Equal(t, "one, and more", string(append(one, ", and more"...)))
		two, err := line.Read()
		require.NoError(t, err)
		require.Equal(t, "two", string(two))
	})
	l.Turn(func(*act.Task) {
		in, err := c.Peek(5) // the connection's own memory, with room behind
		require.NoError(t, err)
		more := append(in, " and what I say"...)
		servertest.Send(t, peer, " and what it says")
		for err := error(nil); err == nil && c.Buffered() < 22; {
			l.Engine().Idle(time.Millisecond)
			_, _ = c.Peek(22)
		}
		require.Equal(t, "three and what I say", string(more))
	})
}
