package coro_test

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// echoes are echo handlers of several kinds.
var echoes = map[string]func(*listener.Conn) act.Action{
	"state machine": func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := c.Peek(1)
			if err != nil {
				return listener.Next(t, err)
			}
			n, err := c.Write(in)
			c.Discard(n)
			return listener.Next(t, err)
		})
	},
	"io.Copy": coro.Serve(func(c *coro.Conn) error {
		_, err := io.Copy(c, c)
		return err
	}),
	"io.Copy to a Writer": coro.Serve(func(c *coro.Conn) error {
		_, err := io.Copy(struct{ io.Writer }{c}, c)
		return err
	}),
	"Read and Write": coro.Serve(func(c *coro.Conn) error {
		var p [512]byte
		for {
			n, err := c.Read(p[:])
			if err != nil {
				return err
			}
			if _, err := c.Write(p[:n]); err != nil {
				return err
			}
		}
	}),
	"Peek of a bufio.Reader": coro.Serve(func(c *coro.Conn) error {
		for r := bufio.NewReaderSize(c, 512); ; {
			p, err := r.Peek(1)
			if err != nil {
				return err
			}
			_, _ = c.Write(p)
			_, _ = r.Discard(r.Buffered())
		}
	}),
}

// idle returns the bytes of heap and stack for each of n connections that have echoed a message and wait. They use
// real sockets if network names one.
func idle(t *testing.T, handler func(*listener.Conn) act.Action, n int, network string) (heap, stack int) {
	l := bench(t)
	s := act.New(act.Config{}) // without the frames of servertest.OS
	streams, message := make([]monitor.Stream, n), make([]byte, 64)
	for i := range streams {
		if network == "" {
			streams[i] = &quiet{in: message}
			continue
		}
		fd, peer := l.Pair(network)
		stream, err := readiness.Of(s).Adopt(fd, network == "unix", (*monitor.ConnLimiter)(nil))
		require.NoError(t, err)
		servertest.Send(t, peer, string(message))
		streams[i] = stream
	}
	before := memory()
	for _, stream := range streams {
		s.Spawn(handler(listener.NewConn(s, stream, listener.Limits{})))
	}
	for taken := n; taken > 0; {
		var err error
		taken, err = s.Step(n)
		require.NoError(t, err)
	}
	after := memory()
	_ = s.Close()
	return (int(after.HeapAlloc) - int(before.HeapAlloc)) / n, (int(after.StackInuse) - int(before.StackInuse)) / n
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// Most of the memory of a suspended coroutine is the runtime's: a goroutine with a stack of 2 or 4 KiB. The rest is
// small; above all there is no buffer.
func TestTheCostOfAnIdleConnectionInMemory(t *testing.T) {
	tier.Measure(t, "measures memory")
	for _, network := range []string{"", "tcp", "unix"} {
		const n = 500
		heap0, stack0 := idle(t, echoes["state machine"], n, network)
		for _, name := range slices.Sorted(maps.Keys(echoes)) {
			heap, stack := idle(t, echoes[name], n, network)
			more := heap + stack - heap0 - stack0
			t.Logf("%4s %-22s %5d bytes of heap and %5d of stack, %5d more than a state machine", network, name, heap, stack, more)
			require.Less(t, more, 8<<10)
		}
	}
}

// Many copies at once have a buffer each; few of the buffers are kept afterwards.
func TestTheCostOfBuffersBehindACrowd(t *testing.T) {
	tier.NoRace(t, "measures memory")
	const n = 300
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	s.Hold(1)
	ended := 0
	before := memory()
	for range n {
		under := listener.NewConn(s, &quiet{in: []byte("hello")}, listener.Limits{})
		s.Spawn(coro.New(func(co *coro.Co) error {
			_, err := io.Copy(sink(func(p []byte) (int, error) { return 0, errors.Join(co.Yield(), errWhy) }), co.Conn(under))
			under.Abort()
			require.ErrorIs(panicking{}, err, errWhy)
			ended++
			return nil
		}))
	}
	servertest.Step(t, s)
	after := memory()
	s.Hold(-1)
	require.Equal(t, n, ended)
	require.Less(t, int(after.HeapAlloc)-int(before.HeapAlloc), n*8<<10)
}
