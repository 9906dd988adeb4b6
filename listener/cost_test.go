package listener_test

import (
	"net"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/lab"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

func TestAConnectionAtRestIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, listener.ConnSize+48, uintptr(80), "48 are the stream's, see monitor")
	}
}

// pingPong returns a function that has one message of 64 bytes echoed.
func pingPong(t testing.TB, l *lab.Lab, c *listener.Conn, peer net.Conn) func() {
	ping, pong := make([]byte, 64), make([]byte, 64)
	o := spawn(l.S, echo(c)).begun(l)
	return func() {
		if _, err := peer.Write(ping); err != nil {
			t.Fatal(err)
		}
		for before := o.turns; o.turns < before+2; { // one that writes, one that finds nothing more
			if _, err := l.S.Step(4); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := peer.Read(pong); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEchoedMessageDoesNotAllocate(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for name, prepare := range map[string]func(*listener.Conn) error{
			"":                  func(*listener.Conn) error { return nil },
			", with a deadline": func(c *listener.Conn) error { return c.SetDeadline(time.Now().Add(time.Hour)) },
		} {
			l := lab.New(t, act.Config{})
			c, peer := l.Conn(network, listener.Limits{})
			require.NoError(t, prepare(c))
			message := pingPong(t, l, c, peer)
			for range 10 {
				message()
			}
			require.Zero(t, testing.AllocsPerRun(300, message), network+name)
			c.Abort()
			l.For(time.Millisecond)
		}
	}
}

// One receive and one send for each message on TCP, and nothing else but the looks of the passes.
func TestAnEchoedMessageIsTwoSystemCalls(t *testing.T) {
	l := lab.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	message := pingPong(t, l, c, peer)
	message()
	l.OS.Forget()
	for range 100 {
		message()
	}
	require.Equal(t, 100, l.OS.Count("receive"))
	require.Equal(t, 100, l.OS.Count("send"))
	require.Zero(t, l.OS.Count("add"))
	require.Zero(t, l.OS.Count("interrupt"))
	c.Abort()
	l.For(time.Millisecond)
}

func TestAWaitForTheQueueDoesNotAllocate(t *testing.T) {
	l := lab.New(t, act.Config{})
	c, _ := l.Conn("unix", listener.Limits{})
	part := make([]byte, 64<<10)
	over := false
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		if over {
			return act.Done
		}
		for {
			if _, err := c.Write(part); err != nil {
				return listener.Next(t, err)
			}
		}
	}))
	l.Until("it is blocked", func() bool { return o.directive == act.Wait })
	var stream monitor.Stream = listener.StreamOf(c)
	before := o.turns
	wait := func() {
		stream.Wake()
		_, _ = l.S.Step(1)
	}
	wait()
	require.Zero(t, testing.AllocsPerRun(100, wait))
	require.GreaterOrEqual(t, o.turns-before, 100)
	over = true
	c.Abort()
	o.over(l)
}
