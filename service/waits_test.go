package service_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/resource"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// sessionOf returns the only task of s.
func sessionOf(t *testing.T, s *act.Scheduler) any {
	t.Helper()
	var found []any
	s.Internals().EachTask(1, func(x *act.Task) bool {
		if !x.Demon() {
			found = append(found, x.Action())
		}
		return true
	})
	require.Len(t, found, 1)
	return found[0]
}

// row returns that of the only service of s.
func row(t *testing.T, s *act.Scheduler) facts.Service {
	t.Helper()
	all := rows(s)
	require.Len(t, all, 1)
	return all[0]
}

// rows asks the tasks and the Locals of s, a row at a time, as package inspect may.
func rows(s *act.Scheduler) (all []facts.Service) {
	list := func(v any) {
		l, ok := v.(facts.Lister)
		for again := true; ok; again = false {
			ok = l.List(again, func(row any) bool {
				all = append(all, *row.(*facts.Service))
				return false
			})
		}
	}
	s.Internals().EachLocal(list)
	s.Internals().EachTask(1, func(x *act.Task) bool { list(x.Action()); return true })
	return all
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
	v := &service.Listener{Address: loopback, Handler: echo.Echo, Filters: []listener.Filter{refusing}, MaxConns: 1}
	l := servertest.New(t, act.Config{})
	require.NoError(t, v.Setup(l.S))
	name := "tcp " + v.Addr().String()
	l.UntilSaid("connections to " + v.Addr().String())

	// A filter, then the handler.
	c := servertest.Dial(t, v.Addr())
	from := c.LocalAddr().String()
	place := "a place for another connection, at the limit"
	said := func() []string { return servertest.Said(l.S) }
	l.Until("the filter", func() bool { return len(said()) == 3 })
	require.Contains(t, said()[1], "a filter of the connection: ")
	require.Equal(t, "input from "+from, said()[2])
	servertest.Send(t, c, "y")
	l.UntilSaid(place, "input from "+from)

	x := sessionOf(t, l.S)
	require.Equal(t, name, x.(interface{ Service() string }).Service())
	require.Greater(t, x.(interface{ Descriptor() int }).Descriptor(), 2)
	var described act.Description
	x.(act.Describer).Describe(&described)
	seen := described.Internals()
	require.GreaterOrEqual(t, seen.Still, time.Duration(0))
	require.Zero(t, seen.Queued+seen.Unread)

	// A second client finds no place, until the first has gone.
	second := servertest.Dial(t, v.Addr())
	require.NoError(t, c.Close())
	servertest.Send(t, second, "n")
	l.Until("the second is refused", func() bool { return row(t, l.S).Refused == 1 })
	got := row(t, l.S)
	require.NotZero(t, got.Full)
	got.Full = 0
	require.Equal(t, facts.Service{Name: name, Max: 1, Open: got.Open, Accepted: 2, Refused: 1}, got)
	require.EqualValues(t, 2, servertest.CountsOf(l.S)["connections_accepted_total"])
}

// What was broken: a peer that sends and reads nothing was as good as one that reads, since something went one way.
func TestAPeerThatSendsAndDoesNotReadIsStuck(t *testing.T) {
	clock := &servertest.Clock{}
	clock.Pass(time.Hour)
	l := servertest.New(t, act.Config{Clock: clock})
	received := 0
	v := &service.Listener{Address: loopback, Handler: func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := c.Peek(1)
			c.Discard(len(in))
			if received += len(in); err == nil {
				_, err = c.Peek(1)
			}
			_, full := c.Write(make([]byte, 64<<10))
			if full == nil {
				return act.Yield
			}
			_ = listener.Next(t, full)
			return listener.Next(t, err)
		})
	}}
	require.NoError(t, v.Setup(l.S))
	c := servertest.Dial(t, v.Addr())
	stuck := func() time.Duration {
		var said act.Description
		sessionOf(t, l.S).(act.Describer).Describe(&said)
		return said.Internals().Stuck
	}
	l.Until("a queue", func() bool {
		return slices.ContainsFunc(servertest.Said(l.S), func(s string) bool { return strings.HasPrefix(s, "room: ") })
	})
	require.Less(t, stuck(), time.Second)
	for n := range 12 {
		clock.Pass(time.Second)
		servertest.Send(t, c, "x")
		l.Until("a byte", func() bool { return received == n+1 })
	}
	require.Less(t, sessionOf(t, l.S).(interface{ Still() time.Duration }).Still(), 2*time.Second)
	require.Greater(t, stuck(), 11*time.Second)

	some := make([]byte, 1<<20)
	l.Until("room", func() bool {
		_, err := c.Read(some)
		require.NoError(t, err)
		return stuck() < time.Second
	})
}

// What was broken: a service that accepts no more had no row, although its connections were there.
func TestAServiceHasARowAsLongAsItHasConnections(t *testing.T) {
	l := servertest.New(t, act.Config{})
	v := &service.Listener{Address: loopback, Handler: echo.Echo, AtEnd: service.Finish, MaxConns: 1}
	other := &service.Listener{Address: loopback, Handler: echo.Echo}
	require.NoError(t, v.Setup(l.S))
	require.NoError(t, other.Setup(l.S))
	c := servertest.Dial(t, v.Addr())
	second := servertest.Dial(t, v.Addr())
	l.Until("one waits for a place", func() bool { return len(rows(l.S)) == 2 && rows(l.S)[0].Full > 0 })
	before := rows(l.S)[0]
	limits, err := listener.Limits{}.Resolved()
	require.NoError(t, err)
	byDefault := service.PlacesFor(resource.Descriptors(), resource.Memory(), limits)
	require.Equal(t, byDefault, rows(l.S)[1].Max)
	require.Equal(t, v.Addr().Network()+" "+v.Addr().String(), before.Name)
	require.NoError(t, second.Close())
	l.S.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	l.Until("they accept no more, and the other one has no connections", func() bool { return len(rows(l.S)) == 1 })
	after := row(t, l.S)
	require.Equal(t, 1, after.Open)
	require.GreaterOrEqual(t, after.Full, before.Full)
	after.Full, after.Accepted = before.Full, before.Accepted
	require.Equal(t, before, after)
	require.NoError(t, c.Close())
	l.Until("the end", func() bool { return len(rows(l.S)) == 0 })
}
