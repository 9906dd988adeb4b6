package listener_test

import (
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// BenchmarkEcho is a message of 64 bytes there and back, the peer's two system calls included, and those of the pass.
func BenchmarkEcho(b *testing.B) {
	for _, network := range []string{"tcp", "unix"} {
		b.Run(network, func(b *testing.B) {
			l := servertest.New(b, act.Config{})
			c, peer := l.Conn(network, listener.Limits{})
			_ = peer.SetDeadline(time.Time{})
			message := pingPong(b, l, c, peer)
			b.ReportAllocs()
			for b.Loop() {
				message()
			}
			c.Abort()
			l.For(time.Millisecond)
		})
	}
}

// loop is a Stream without a socket: there is always a message, and what is sent is gone.
type loop struct {
	monitor.Stream
	in []byte
}

func (s *loop) Lend(int) ([]byte, error)             { return s.in, nil }
func (s *loop) Send(_, p []byte, _ int) (int, error) { return len(p), nil }
func (s *loop) Queued() (int, error)                 { return 0, nil }
func (s *loop) Abort()                               {}

// BenchmarkPeekWriteDiscard is what a Conn adds to its Stream, with a turn around it.
func BenchmarkPeekWriteDiscard(b *testing.B) {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	c := listener.NewConn(s, &loop{in: make([]byte, 64)}, listener.Limits{})
	over := false
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		in, _ := c.Peek(1)
		n, _ := c.Write(in)
		c.Discard(n)
		if over {
			return act.Done
		}
		return act.Yield
	}))
	b.ReportAllocs()
	b.ResetTimer()
	_, _ = s.Step(b.N)
	over = true
	_ = s.Run()
}
