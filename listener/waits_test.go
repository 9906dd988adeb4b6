package listener_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// over is an action on a connection that says only what the connection says.
type over struct {
	act.Func
	*listener.Conn
}

func TestWhatAConnectionIsAwaitedFor(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	from := peer.LocalAddr().String()

	stage := "input"
	var w act.Waker
	l.S.Spawn(over{func(task *act.Task) act.Directive {
		w = task.Waker()
		switch stage {
		case "input":
			_, err := c.Peek(1)
			return c.Next(task, err)
		case "a part":
			_, err := c.Peek(100)
			return c.Next(task, err)
		case "the end":
			_, err := c.Ended(task)
			require.NoError(t, err)
		case "room":
			_, err := c.Write(make([]byte, 1<<20))
			for err == nil {
				_, err = c.Write(make([]byte, 1<<20))
			}
			return c.Next(task, err)
		}
		return act.Wait
	}, c})
	l.UntilSaid("input from " + from)
	stage = "a part"
	servertest.Send(t, peer, "hello")
	l.Until("the bytes", func() bool { return c.Buffered() == 5 })
	l.UntilSaid("input from " + from)
	stage = "the end"
	w.Wake()
	l.UntilSaid("the end of " + from)
	stage = "room"
	w.Wake()
	l.Until("a queue", func() bool { return c.Queued() > 0 })
	l.UntilSaid(fmt.Sprintf("room: %d bytes queued for %s", c.Queued(), from))
	counts := servertest.CountsOf(l.S)
	require.EqualValues(t, 1, counts["connections"])
	require.NotZero(t, counts["sends_short_total"])
	require.NotZero(t, counts["waits_for_room_total"])
	require.EqualValues(t, 5, counts["received_bytes_total"])
	require.Equal(t, uint64(l.OS.Bytes("send")), counts["sent_bytes_total"])
	c.Abort()
	require.Empty(t, servertest.Said(l.S))
	stage = "nothing"
	require.EqualValues(t, 1, servertest.CountsOf(l.S)["connections_aborted_total"])
	require.Zero(t, servertest.CountsOf(l.S)["connections"])
}

// never is an Executor that calls nothing.
type never struct{}

func (never) Execute(func()) {}

// The leaves of this package, waiting.
func TestWaitsOfLeaves(t *testing.T) {
	t.Run("Accept", func(t *testing.T) {
		l := servertest.New(t, act.Config{})
		limiter := monitor.NewConnLimiter(1)
		engine, err := monitor.EngineOf(l.S)
		require.NoError(t, err)
		from, err := engine.Listen(monitor.ListenOptions{
			Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, Limiter: limiter})
		require.NoError(t, err)
		l.S.Spawn(&listener.Accept{From: from})
		l.UntilSaid("connections to " + from.Addr().String())
		require.True(t, limiter.Acquire())
		servertest.Dial(t, from.Addr())
		l.UntilSaid("a place for another connection, at the limit")
		require.EqualValues(t, 1, servertest.CountsOf(l.S)["accepts_full_total"])
	})
	t.Run("Receive", func(t *testing.T) {
		l := servertest.New(t, act.Config{})
		l.S.Spawn(&listener.Receive[os.Signal]{From: monitor.NewMailbox[os.Signal](1)})
		l.UntilSaid("a value in a *monitor.Mailbox[os.Signal]")
	})
	t.Run("Connect looks a name up", func(t *testing.T) {
		l := servertest.New(t, act.Config{Executor: never{}})
		l.S.Spawn(&listener.Connect{Address: "localhost:http"})
		l.UntilSaid("a lookup of localhost:http")
	})
	t.Run("Connect", func(t *testing.T) {
		l := servertest.New(t, act.Config{})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = ln.Close() }()
		c := &listener.Connect{Address: ln.Addr().String()}
		l.Turn(func(t *act.Task) { // before anything can have been reported
			require.Equal(l.T, act.Wait, c.Act(t))
			var said []string
			c.Waits(func(what string) { said = append(said, what) })
			require.Equal(l.T, []string{"a connection to " + c.Address}, said)
			_ = c.Close()
		})
	})
	t.Run("Connect runs a filter", func(t *testing.T) {
		l := servertest.New(t, act.Config{})
		at := filepath.Join(servertest.ShortDir(t), "s")
		ln, err := net.Listen("unix", at)
		require.NoError(t, err)
		defer func() { _ = ln.Close() }()
		l.S.Spawn(&listener.Connect{Address: "unix:" + at, Filters: []listener.Filter{func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				_, err := c.Peek(1)
				return listener.Next(t, err)
			})
		}}})
		l.Until("it waits", func() bool { return len(servertest.Said(l.S)) == 2 })
		require.Equal(t, "input from "+at, servertest.Said(l.S)[1])
	})
	t.Run("Bridge", func(t *testing.T) {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("tcp", listener.Limits{})
		release := make(chan struct{})
		l.S.Spawn(&listener.Bridge{Conn: c, F: func(net.Conn) error { <-release; return nil }})
		l.Until("it says both", func() bool { return len(servertest.Said(l.S)) == 2 })
		said := servertest.Said(l.S)
		require.Equal(t, "input from "+peer.LocalAddr().String(), said[0])
		require.Contains(t, said[1], "a function off the thread: ")
		close(release)
		l.Until("its end", func() bool { return len(servertest.Said(l.S)) == 0 })
	})
}
