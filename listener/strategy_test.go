package listener_test

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
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

// What every server stands on, under each way to be idle.
func TestUnderEachIdleStrategy(t *testing.T) {
	for _, name := range demon.Strategies {
		t.Run(name, func(t *testing.T) {
			idle, err := demon.ParseStrategy(name)
			require.NoError(t, err)
			var at net.Addr
			r := servertest.Start(t, act.Config{Schedulers: 2, Idle: idle}, serve(&at, listener.Limits{Linger: 200 * time.Millisecond}, echo))
			for what, play := range plays {
				t.Run(what, func(t *testing.T) { play(t, servertest.Dial(t, at)) })
			}
			r.Group.Shutdown(servertest.Drain)
			require.NoError(t, r.End())
			require.Empty(t, r.Logs.FilterMessage("a task failed").All())
		})
	}
}

var plays = map[string]func(t *testing.T, c net.Conn){
	"echo": func(t *testing.T, c net.Conn) {
		for range 20 {
			servertest.Send(t, c, "hello")
			servertest.Expect(t, c, "hello")
		}
		require.NoError(t, c.Close())
	},
	"half-close": func(t *testing.T, c net.Conn) {
		servertest.Send(t, c, "all I have")
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		servertest.Expect(t, c, "all I have")
		servertest.ExpectEOF(t, c)
	},
	"a megabyte": func(t *testing.T, c net.Conn) {
		all := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
		go func() {
			_, _ = c.Write(all)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		back, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, bytes.Equal(all, back))
	},
	"reset": func(t *testing.T, c net.Conn) {
		servertest.Send(t, c, "hello")
		servertest.Reset(t, c)
	},
	"silence": func(t *testing.T, c net.Conn) {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Millisecond)))
		_, err := c.Read(make([]byte, 1))
		var n net.Error
		require.ErrorAs(t, err, &n)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(servertest.Timeout)))
		servertest.Send(t, c, "x")
		servertest.Expect(t, c, "x")
	},
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
		servertest.Send(t, other, "ping")
		servertest.Expect(t, other, "ping")
	}
	servertest.Reset(t, hose)
	_ = other.Close()
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	_, err := net.Dial("tcp", at.String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
