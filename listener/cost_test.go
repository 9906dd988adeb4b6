package listener_test

import (
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/price"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
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

func TestAnEchoedMessageDoesNotAllocate(t *testing.T) {
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
			require.Zero(t, testing.AllocsPerRun(300, message), network+name)
			c.Abort()
			l.For(0)
		}
	}
}

// One receive and one send for each message on TCP, and nothing else but the looks of the passes.
func TestAnEchoedMessageIsTwoSystemCalls(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	message := pingPong(t, l, c, peer)
	message()
	l.OS.Forget()
	for range 100 {
		message()
	}
	require.Equal(t, 100*netpoll.Receives, l.OS.Count("receive"))
	require.Equal(t, 100, l.OS.Count("send"))
	require.Zero(t, l.OS.Count("add"))
	require.Zero(t, l.OS.Count("interrupt"))
	c.Abort()
	l.For(0)
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

// What a connection costs that has been busy and is at rest again: itself, its stream, and the slot where
// events find it. The memory kept for connections in use is the same for any number.
func TestMeasureConnectionsAtRest(t *testing.T) {
	tier.Measure(t, "memory")
	price.AtMost(t, "bytes of a connection at rest", 160, func() float64 {
		const n = 2000
		l := &servertest.Stepped{T: t, S: act.New(act.Config{})} // not New: its OS has a memory of its own
		defer func() { require.NoError(t, l.S.Close()) }()
		pairs := make([][2]int, n+100)
		for i := range pairs {
			var err error
			pairs[i], err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			require.NoError(t, err)
			require.NoError(t, syscall.SetNonblock(pairs[i][0], true))
		}
		conns := make([]*listener.Conn, 0, len(pairs))
		use := func(pairs [][2]int) {
			for _, pair := range pairs {
				stream, err := l.Engine().Adopt(pair[0], true, (*monitor.ConnLimiter)(nil))
				require.NoError(t, err)
				conns = append(conns, listener.NewConn(l.S, stream, listener.Limits{}))
			}
			exchange(l, conns[len(conns)-len(pairs):], pairs)
		}
		use(pairs[:100]) // fills the stock
		before := heap()
		use(pairs[100:])
		each := float64(heap()-before) / n
		for i, c := range conns {
			require.True(t, listener.AtRest(c))
			c.Abort()
			require.NoError(t, syscall.Close(pairs[i][1]))
		}
		return each
	})
}

// exchange has each connection receive a byte and send it back.
func exchange(l *servertest.Stepped, conns []*listener.Conn, pairs [][2]int) {
	for _, pair := range pairs {
		_, err := syscall.Write(pair[1], []byte("x"))
		require.NoError(l.T, err)
	}
	done := 0
	l.Until("all are at rest", func() bool {
		l.Turn(func(*act.Task) {
			for _, c := range conns {
				in, _ := c.Peek(1)
				_, _ = c.Write(in)
				c.Discard(len(in))
				done += len(in)
			}
		})
		return done == len(conns)
	})
}

// heap is how many bytes are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A client that is always a message ahead: there is an unread rest at the end of every turn, and one buffer is enough.
func TestAConnectionThatAlwaysKeepsARestDoesNotAllocate(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{})
	part := make([]byte, 300)
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(c.Buffered() + 1)
		if err != nil {
			return listener.Next(t, err)
		}
		c.Discard(len(in) - 10)
		return act.Yield
	}))
	message := func() {
		_, _ = peer.Write(part)
		for before := o.turns; o.turns < before+2; {
			_, _ = l.S.Step(1)
		}
	}
	messages := func() { // so many that a buffer would not do for them
		for range 100 {
			message()
		}
	}
	messages()
	require.Equal(t, 10, c.Buffered())
	require.Zero(t, testing.AllocsPerRun(5, messages))
	require.NoError(t, peer.Close())
	require.Equal(t, act.Done, o.over(l))
	c.Abort()
}
