package service_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// sessionOf returns the only task of s.
func sessionOf(t *testing.T, s *act.Scheduler) any {
	t.Helper()
	var found []any
	hook.EachTask(s, 1, func(x hook.Task) bool {
		if !x.Demon {
			found = append(found, x.Action)
		}
		return true
	})
	require.Len(t, found, 1)
	return found[0]
}

// row returns that of the only service of s.
func row(t *testing.T, s *act.Scheduler) (found hook.Service) {
	t.Helper()
	n := 0
	hook.EachTask(s, 1, func(x hook.Task) bool {
		if v, ok := x.Action.(hook.Lister); ok {
			require.False(t, v.List(false, nil), "there is one row")
			v.List(true, func(row any) bool { found, n = *row.(*hook.Service), n+1; return true })
		}
		return true
	})
	require.Equal(t, 1, n)
	return found
}

// refusing is a filter that waits for a byte and refuses all but y.
func refusing(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		switch {
		case err != nil:
			return listener.Next(t, err)
		case in[0] != 'y':
			return t.Fail(io.ErrUnexpectedEOF)
		}
		c.Discard(1)
		return act.Done
	})
}

func TestWhatAServiceAndItsConnectionsSay(t *testing.T) {
	for _, v := range []struct {
		network string
		socketed
	}{
		{"tcp", &service.TCP{Address: loopback, Handler: echo, Filters: []listener.Filter{refusing}, MaxConns: 1}},
		{"unix", &service.Unix{Path: servertest.ShortDir(t) + "/s", Handler: echo, Filters: []listener.Filter{refusing}, MaxConns: 1}},
	} {
		t.Run(v.network, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			require.NoError(t, v.Setup(l.S))
			name := v.network + " " + v.Addr().String()
			l.UntilSaid("connections to " + v.Addr().String())

			// A filter, then the handler.
			c, err := net.Dial(v.network, v.Addr().String())
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			from := "its peer"
			if v.network == "tcp" {
				from = c.LocalAddr().String()
			}
			place := "a place for another connection, at the limit"
			said := func() []string { return servertest.Said(l.S) }
			l.Until("the filter", func() bool { return len(said()) == 3 })
			require.Contains(t, said()[1], "a filter of the connection: ")
			require.Equal(t, "input from "+from, said()[2])
			servertest.Send(t, c, "y")
			l.UntilSaid(place, "input from "+from)

			x := sessionOf(t, l.S)
			require.Equal(t, name, x.(hook.Serving).Service())
			require.Greater(t, x.(hook.Descriptor).Descriptor(), 2)
			seen, ok := x.(hook.Connected).Connection()
			require.True(t, ok)
			require.GreaterOrEqual(t, seen.Still, time.Duration(0))
			require.Zero(t, seen.Queued+seen.Unread)

			// A second client finds no place, until the first has gone.
			second, err := net.Dial(v.network, v.Addr().String())
			require.NoError(t, err)
			defer func() { _ = second.Close() }()
			require.NoError(t, c.Close())
			servertest.Send(t, second, "n")
			l.Until("the second is refused", func() bool { return row(t, l.S).Refused == 1 })
			got := row(t, l.S)
			require.NotZero(t, got.Full)
			got.Full = 0
			require.Equal(t, hook.Service{Name: name, Max: 1, Open: got.Open, Accepted: 2, Refused: 1}, got)
			require.EqualValues(t, 2, servertest.CountsOf(l.S)["connections_accepted_total"])
		})
	}
}

// A session that has ended says nothing, and one whose peer does not read says how much is queued.
func TestWhatASessionSaysOfASlowPeer(t *testing.T) {
	l := servertest.New(t, act.Config{})
	v := &service.TCP{Address: loopback, Handler: func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			_, err := c.Write(make([]byte, 64<<10))
			return listener.Next(t, err)
		})
	}}
	require.NoError(t, v.Setup(l.S))
	c, err := net.Dial("tcp", v.Addr().String())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	queued := 0
	l.Until("a queue", func() bool {
		return len(servertest.Said(l.S)) == 2
	})
	seen, ok := sessionOf(t, l.S).(hook.Connected).Connection()
	require.True(t, ok)
	queued = seen.Queued
	require.Equal(t, c.LocalAddr().String(), seen.Peer)
	require.NotZero(t, queued)
	require.Equal(t, fmt.Sprintf("room: %d bytes queued for %v", queued, c.LocalAddr()), servertest.Said(l.S)[1])
}

// What is asked at the beginning of each turn allocates nothing.
func TestDescriptorAllocatesNothing(t *testing.T) {
	l := servertest.New(t, act.Config{})
	v := &service.TCP{Address: loopback, Handler: echo}
	require.NoError(t, v.Setup(l.S))
	servertest.Dial(t, v.Addr())
	l.Until("it waits", func() bool { return len(servertest.Said(l.S)) == 2 })
	x := sessionOf(t, l.S).(hook.Descriptor)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = x.Descriptor() }))
}
