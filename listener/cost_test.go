package listener_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestAConnectionAtRestIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, listener.ConnSize+48, uintptr(80), "48 are the stream's, see monitor")
	}
}

// pingPong returns a function that has one message of 64 bytes echoed.
func pingPong(t testing.TB, l *servertest.Stepped, c *listener.Conn, peer net.Conn) func() {
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

// One receive and one send for each message, no memory, and nothing else but the looks of the passes.
func TestAnEchoedMessageIsTwoSystemCallsAndDoesNotAllocate(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for name, prepare := range map[string]func(*listener.Conn) error{
			"":                  func(*listener.Conn) error { return nil },
			", with a deadline": func(c *listener.Conn) error { return c.SetDeadline(time.Now().Add(time.Hour)) },
		} {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn(network, listener.Limits{})
			require.NoError(t, prepare(c))
			message := pingPong(t, l, c, peer)
			for range 10 {
				message()
			}
			l.OS.Forget()
			require.Zero(t, testing.AllocsPerRun(99, message), network+name) // and one more to warm up
			if network == "tcp" {
				require.Equal(t, 100*l.OS.Receives(), l.OS.Count("receive"))
			}
			require.Equal(t, 100, l.OS.Count("send"))
			require.Zero(t, l.OS.Count("add")+l.OS.Count("interrupt"))
			c.Abort()
			l.For(0)
		}
	}
}

func TestWhatIsSentDoesNotAllocate(t *testing.T) {
	f, _ := file(t, 1<<20)
	small, large := []byte("small"), make([]byte, listener.Gathered+1)
	for name, send := range map[string]func(c *listener.Conn) error{
		"Write": func(c *listener.Conn) error {
			_, _ = c.Write(small)
			_, err := c.Write(large)
			return err
		},
		"Push":     func(c *listener.Conn) error { _ = c.Push(small); return c.Push(large) },
		"SendFile": func(c *listener.Conn) error { _, err := c.SendFile(f, 4096, 200_000); return err },
	} {
		for way, conn := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				l := servertest.New(t, act.Config{})
				c, peer := conn(l, "tcp", listener.Limits{})
				var heard sync.WaitGroup
				heard.Go(func() { _, _ = io.Copy(io.Discard, peer) })
				over := false
				o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
					if over {
						return act.Done
					}
					return listener.Next(t, send(c))
				})).begun(l)
				step := func() { _, _ = l.S.Step(1) }
				for range 100 {
					step()
				}
				require.Zero(t, testing.AllocsPerRun(300, step))
				over = true
				listener.StreamOf(c).Wake()
				o.over(l)
				c.Abort()
				l.For(0)
				heard.Wait()
			})
		}
	}
}
