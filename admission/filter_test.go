package admission_test

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// greets says a word, and then sends back what it receives.
func greets(c *listener.Conn) act.Action {
	fmt.Fprint(c, "welcome")
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err == nil {
			var n int
			n, err = c.Write(in)
			c.Discard(n)
		}
		return c.Next(t, err)
	})
}

// A Unix socket has no source, and a zero Limiter no limits.
func TestConnectionsWithoutALimit(t *testing.T) {
	require.Empty(t, (&admission.Limiter{}).Filters())
	for _, v := range []interface {
		Setup(*act.Scheduler) error
		Addr() net.Addr
	}{
		&service.Listener{Address: "unix:" + servertest.ShortDir(t) + "/s", Handler: greets, Filters: []listener.Filter{(&admission.Limiter{Conns: 1, Rate: 1}).Filter}},
		&service.Listener{Address: "127.0.0.1:0", Handler: greets, Filters: []listener.Filter{(&admission.Limiter{}).Filter}},
	} {
		r := servertest.Start(t, act.Config{Schedulers: 1}, v.Setup)
		for range 5 {
			c := servertest.Dial(t, v.Addr())
			servertest.Expect(t, c, "welcome")
			defer c.Close()
		}
		r.Group.Shutdown(servertest.Cut)
		_ = r.End()
	}
}

// Nothing of the connection is lost: the kernel sends files, and the end is known.
func TestALimitLeavesSendFileAndEnded(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	path := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(path, []byte("of a file"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	l.Turn(func(task *act.Task) {
		require.Nil(t, (&admission.Limiter{Conns: 1}).Filter(c))
		_, err := c.SendFile(f, 0, 9)
		require.NoError(t, err)
	})
	require.NotZero(t, l.OS.Count("sendfile"), "the system's own way")
	servertest.Expect(t, peer, "of a file")
	require.NoError(t, peer.(*net.TCPConn).CloseWrite())
	l.Until("its end is known", func() (half bool) {
		l.Turn(func(task *act.Task) { half, _ = c.Ended(task) })
		return half
	})
	c.Abort()
}

// below is a Stream as that of TLS, which carries other bytes.
type below struct{ monitor.Stream }

func (b below) Below() monitor.Stream { return b.Stream }

func TestMessagesOfASource(t *testing.T) {
	clock := &servertest.Clock{}
	l := servertest.New(t, act.Config{Clock: clock})
	limits := &admission.Limiter{Messages: 2, MessageBurst: 3}
	conn := func() *listener.Conn {
		c, _ := l.Conn("tcp", listener.Limits{})
		l.Turn(func(*act.Task) {
			require.Nil(t, limits.Filter(c))
			require.Nil(t, (&admission.Limiter{Conns: 9}).Filter(c))
			require.NoError(t, c.Wrap(func(s monitor.Stream) monitor.Stream { return below{s} }))
		})
		return c
	}
	say := func(count func(*listener.Conn) time.Duration, c *listener.Conn) (wait int) {
		l.Turn(func(*act.Task) { wait = int(count(c).Milliseconds()) })
		return wait
	}
	one, other := conn(), conn()
	for _, c := range []*listener.Conn{one, other, one} {
		require.Zero(t, say(limits.Take, c))
	}
	for range 2 {
		require.Equal(t, 500, say(limits.Take, one), "what is refused does not count")
	}
	clock.Pass(500 * time.Millisecond)
	require.Zero(t, say(limits.Take, other))
	require.Equal(t, 500, say(limits.Pace, one))
	require.Equal(t, 1000, say(limits.Pace, other), "what is not refused counts")
	one.Abort()
	other.Abort()
	again := conn()
	require.Equal(t, 1500, say(limits.Take, again), "it is remembered")
	clock.Pass(time.Hour)
	for range 3 {
		require.Zero(t, say(limits.Pace, again))
	}
	require.Equal(t, 500, say(limits.Pace, again))
	require.Zero(t, say((&admission.Limiter{Messages: 1}).Take, again), "it has not passed that one")
	again.Abort()
}
