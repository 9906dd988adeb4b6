package listener_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// echo sends back what it receives, and ends as its peer does.
func echo(c *listener.Conn) act.Func {
	return func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			d := listener.Next(t, err)
			if d.Finished() {
				_ = c.Close()
				return act.Done
			}
			return d
		}
		n, err := c.Write(in)
		c.Discard(n)
		return listener.Next(t, err)
	}
}

// serve is a set-up function that serves on the first scheduler until an order comes, and notes where.
func serve(at *net.Addr, limits listener.Limits, handler func(*listener.Conn) act.Func) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		if s.Index() > 0 {
			return nil
		}
		from, err := listen(s, "127.0.0.1:0", nil, nil)
		if err != nil {
			return err
		}
		*at = from.Addr()
		a := &listener.Accept{From: from, Limits: limits}
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			for t.Order() == nil {
				if d := a.Act(t); d != act.Done {
					return d
				}
				s.Spawn(handler(a.Conn()))
			}
			_ = from.Close()
			return act.Done
		}))
		return nil
	}
}

// A client that sends for ever and never reads costs no more than the marks, and its neighbours nothing.
func TestAClientThatSendsForEverAndNeverReadsIsHeldUp(t *testing.T) {
	var at net.Addr
	var conns []*listener.Conn // of the first scheduler
	r := servertest.Start(t, act.Config{Schedulers: 1}, serve(&at, listener.Limits{High: 32 << 10, Read: 16 << 10},
		func(c *listener.Conn) act.Func { conns = append(conns, c); return echo(c) }))
	hose := servertest.Dial(t, at)
	held := make(chan struct{})
	go func() {
		defer close(held)
		for part := make([]byte, 64<<10); ; {
			_ = hose.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			if _, err := hose.Write(part); err != nil {
				return // held up, not reset
			}
		}
	}()
	<-held
	r.On(0, func(*act.Scheduler) {
		require.LessOrEqual(t, conns[0].Queued(), 32<<10+listener.Gathered)
		require.LessOrEqual(t, conns[0].Buffered(), 16<<10)
	})
	other := servertest.Dial(t, at)
	for range 50 {
		servertest.Echo(t, other, "ping")
	}
	servertest.Reset(t, hose)
	_ = other.Close()
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	_, err := net.Dial("tcp", at.String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
