package admission_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
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
	for _, v := range []interface {
		Setup(*act.Scheduler) error
		Addr() net.Addr
	}{
		&service.Unix{Path: servertest.ShortDir(t) + "/s", Handler: greets, Filters: []listener.Filter{(&admission.Limiter{Conns: 1, Rate: 1}).Filter}},
		&service.TCP{Address: "127.0.0.1:0", Handler: greets, Filters: []listener.Filter{(&admission.Limiter{}).Filter}},
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

// Nothing of the connection is lost: the system sends files, and the end is known.
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
