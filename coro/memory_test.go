package coro_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/price"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
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
}

// idle returns the bytes of heap and stack for each of n connections that have echoed a message and wait.
func idle(t *testing.T, handler func(*listener.Conn) act.Action, n int) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := act.New(act.Config{})
	before := memory()
	for range n {
		s.Spawn(handler(listener.NewConn(s, &quiet{in: make([]byte, 64)}, listener.Limits{})))
	}
	servertest.Step(t, s)
	after := memory()
	_ = s.Close()
	return (int(after.HeapAlloc) - int(before.HeapAlloc) + int(after.StackInuse) - int(before.StackInuse)) / n
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// Most of the memory of a suspended coroutine is the runtime's: a goroutine with a stack of 2 or 4 KiB. The rest is
// small; above all there is no buffer.
func TestMeasureIdleCoroutine(t *testing.T) {
	tier.Measure(t, "memory")
	price.AtMost(t, "bytes of an idle coroutine more than of a state machine", 8<<10, func() float64 {
		return float64(idle(t, echoes["io.Copy"], 500) - idle(t, echoes["state machine"], 500))
	})
}
