package service_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// An end has phases and bounds, and here clients over real sockets see those that no clock decides. The others, and all that is
// late or early, show in the simulated worlds (TestWorldEnds in sim).

// long is a bound that no test reaches, and never one that is beyond it.
const long, never = servertest.Timeout, 100 * servertest.Timeout

func TestPhasesOfAnEnd(t *testing.T) {
	for _, row := range []struct {
		name string
		test func(*testing.T, *scene)
	}{
		{"announce: an order at once brings it into force", hastened},
		{"withdraw: all goes on", withdrawn},
		{"stop accepting: clients that the kernel has accepted are served", arrived},
		{"finish: what has begun is answered, and the rest ends at once", finished},
		{"turns: a task gets no more", outOfTurns},
		{"force: a second order cuts what the first one waits for", forced},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, c := range cells() {
				t.Run(c.String(), func(t *testing.T) {
					s := &scene{T: t, cell: c}
					s.server = both(t, s.serve)[c.kind]
					s.w = begin(t, c.config(t), s.server.Setup)
					row.test(t, s)
				})
			}
		})
	}
}

// cell is a place in the matrix of kinds of sockets, idle strategies and numbers of schedulers.
type cell struct {
	kind       int // of both
	idle       string
	schedulers int
}

// cells returns some cells in which each value of the matrix is there.
func cells() (all []cell) {
	for i, idle := range demon.Strategies {
		all = append(all, cell{i % 2, idle, 1 + (i+1)/2%2})
	}
	return all
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %d", [...]string{"tcp", "unix"}[c.kind], c.idle, c.schedulers)
}

func (c cell) config(t *testing.T) act.Config {
	idle, err := demon.ParseStrategy(c.idle)
	require.NoError(t, err)
	return act.Config{Schedulers: c.schedulers, Idle: idle}
}

// scene is a server whose protocol is lines, and an order to it.
type scene struct {
	*testing.T
	cell
	server   kind
	w        *world
	turns    atomic.Int64 // that its connections have had under an order
	accepted atomic.Int64
}

// order gives an order with these terms.
func (s *scene) order(terms shutdown.Policy) {
	s.w.Group.Shutdown(shutdown.Now{Terms: terms})
}

// idle returns a client whose line was answered.
func (s *scene) idle() net.Conn {
	c := servertest.Dial(s, s.server.Addr())
	repeats(s.T, c, "before")
	return c
}

// begun returns a client whose second line has come in part.
func (s *scene) begun() net.Conn {
	c := servertest.Dial(s, s.server.Addr())
	servertest.Send(s, c, "before\nbe")
	servertest.Expect(s, c, "before\n")
	return c
}

// served wants clients, and new ones, to be answered.
func (s *scene) served(clients ...net.Conn) {
	another := servertest.Dial(s, s.server.Addr())
	for _, c := range append(clients, another) {
		repeats(s.T, c, "it goes on")
		repeats(s.T, c, "and on")
	}
	require.NoError(s, another.Close())
}

// ends wants the server to end the connections in order.
func (s *scene) ends(clients ...net.Conn) {
	for _, c := range clients {
		ended(s.T, c, false)
	}
}

// cut wants the server to end with what it has cut, which is one client.
func (s *scene) cut() {
	cut := (*shutdown.Cut)(nil)
	require.ErrorAs(s, s.w.End(), &cut)
	require.Equal(s, 1, cut.Tasks, "%v", cut)
	require.True(s, cut.Dropped)
}

// drained wants the server to end with nothing left.
func (s *scene) drained() { require.NoError(s, s.w.End()) }

func hastened(t *testing.T, s *scene) {
	idle := s.idle()
	s.order(shutdown.Policy{Time: 2 * never, Announce: never, Drop: true})
	s.served(idle)
	s.order(shutdown.Unbounded)
	s.ends(idle)
	s.drained()
}

func withdrawn(t *testing.T, s *scene) {
	idle := s.idle()
	terms := shutdown.Policy{Time: 2 * never, Announce: never, Drop: true}
	s.order(terms)
	require.True(t, s.w.Group.Withdraw(shutdown.Now{Terms: terms}))
	require.Nil(t, s.w.Group.Ending())
	s.served(idle)
	s.order(shutdown.Unbounded)
	s.ends(idle)
	require.False(t, s.w.Group.Withdraw(shutdown.Now{Terms: shutdown.Unbounded}), "it is in force, or is over")
	s.drained()
}

func arrived(t *testing.T, s *scene) {
	release := s.w.hold([]int{0, 1}[:s.schedulers]...)
	c := servertest.Dial(t, s.server.Addr())
	s.order(shutdown.Policy{Time: long, Drop: true})
	require.Zero(t, s.accepted.Load())
	release()
	repeats(t, c, "hello")
	s.ends(c)
	s.drained()
}

func finished(t *testing.T, s *scene) {
	begun, idle := s.begun(), s.idle()
	s.order(shutdown.Policy{Time: long, Drop: true})
	s.ends(idle)
	servertest.Send(t, begun, "gun\n")
	servertest.Expect(t, begun, "begun\n")
	s.ends(begun)
	s.drained()
}

func outOfTurns(t *testing.T, s *scene) {
	begun := s.begun()
	s.order(shutdown.Policy{Turns: 3, Drop: true})
	var err error
	for err == nil { // each byte may cause a turn
		_, err = io.WriteString(begun, "x")
		time.Sleep(time.Millisecond)
	}
	s.cut()
	require.EqualValues(t, 3, s.turns.Load())
	require.NoError(t, begun.Close())
}

func forced(_ *testing.T, s *scene) {
	begun, idle := s.begun(), s.idle()
	s.order(shutdown.Policy{Time: never, Spread: 10 * time.Millisecond, Drop: true})
	s.ends(idle)
	s.order(servertest.Cut.Terms)
	s.cut()
	ended(s.T, begun, true)
}

// serve makes the action of a connection.
func (s *scene) serve(c *listener.Conn) act.Action {
	s.accepted.Add(1) // Open of the server also counts the place that an acceptor holds for a moment
	return &lines{scene: s, conn: c}
}

// lines sends lines back. Under an order it ends at its moment if no line has begun, or behind the line that has.
type lines struct {
	scene *scene
	conn  *listener.Conn
	leave time.Duration // when it ends at the latest, if told
	told  bool
	any   bool // a line was answered
	timer act.Timer
}

func (x *lines) Act(t *act.Task) act.Directive {
	if t.Order() != nil {
		x.scene.turns.Add(1)
	}
	in, err := x.conn.Peek(1)
	for err == nil && bytes.IndexByte(in, '\n') < 0 {
		in, err = x.conn.Peek(len(in) + 1)
	}
	if x.told && len(in) == 0 && t.Scheduler().Now() >= x.leave {
		return act.Done
	}
	if err != nil {
		return listener.Next(t, err)
	}
	n, err := x.conn.Write(in[:bytes.IndexByte(in, '\n')+1])
	x.conn.Discard(n)
	if x.any = true; x.told {
		return act.Done
	}
	return listener.Next(t, err)
}

func (x *lines) Stop(t *act.Task, _ shutdown.Order) {
	var leave time.Duration
	if x.any {
		leave = t.NextLeaveTime()
	} else {
		leave = x.conn.FirstLeaveTime(t)
	}
	if !x.told || leave < x.leave {
		x.leave = leave
	}
	x.told = true
	t.WakeAt(&x.timer, x.leave)
}

// Close stops the timer.
func (x *lines) Close() error {
	x.timer.Stop()
	return nil
}

// repeats sends a line and wants it back.
func repeats(t *testing.T, c net.Conn, line string) {
	t.Helper()
	_, err := io.WriteString(c, line+"\n")
	require.NoError(t, err)
	got, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, line+"\n", got)
}

// ended wants the server to end the connection, by a reset or in order.
func ended(t *testing.T, c net.Conn, reset bool) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	_, err := c.Read(make([]byte, 1))
	if timeout := net.Error(nil); errors.As(err, &timeout) {
		require.False(t, timeout.Timeout(), "it goes on")
	}
	if reset && c.RemoteAddr().Network() == "tcp" { // a Unix socket that is aborted ends as any other
		require.NotErrorIs(t, err, io.EOF)
	} else if !reset {
		require.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, c.Close()) // otherwise the server waits for that
}

// ending returns a service of the scene's kind whose connections end like that.
func (s *scene) ending(at service.Ending) socketed {
	k := both(s.T, s.serve)[s.kind]
	switch v := k.socketed.(type) {
	case *service.TCP:
		v.AtEnd = at
	case *service.Unix:
		v.AtEnd = at
	}
	return k.socketed
}

// Under an order the connections of each service end as it says. A service that is told is there to show that the order is in
// force, as no other is told.
func TestWhatBecomesOfConnectionsAtTheEnd(t *testing.T) {
	for _, c := range cells() {
		t.Run(c.String(), func(t *testing.T) {
			s := &scene{T: t, cell: c}
			told, finish := s.ending(service.FinishRequest), s.ending(service.Finish)
			discard, last := s.ending(service.Discard), s.ending(service.LastOfAll)
			s.w = begin(t, c.config(t), told.Setup, finish.Setup, discard.Setup, last.Setup)
			clients := map[service.Ending]net.Conn{}
			for at, v := range []socketed{told, finish, discard, last} {
				clients[service.Ending(at)] = servertest.Dial(t, v.Addr())
				repeats(t, clients[service.Ending(at)], "before")
			}
			s.order(shutdown.Policy{Time: long, Drop: true})
			ended(t, clients[service.FinishRequest], false)
			ended(t, clients[service.Discard], true)
			repeats(t, clients[service.Finish], "it knows nothing of the order")
			if c.schedulers == 1 { // else the last ones of the other scheduler may have ended already
				repeats(t, clients[service.LastOfAll], "it is still there")
				another := servertest.Dial(t, last.Addr())
				repeats(t, another, "and accepts")
				require.NoError(t, another.Close())
			}
			require.NoError(t, clients[service.Finish].Close())
			ended(t, clients[service.LastOfAll], false)
			s.drained()
		})
	}
}

// A service that another process goes on with is not needed to the last: its connections end with the others, also if the order
// has come first.
func TestConnectionsOfAServiceThatIsGivenEndWithTheOthers(t *testing.T) {
	for _, orderFirst := range []bool{false, true} {
		for _, c := range cells() {
			t.Run(fmt.Sprintf("%v, order first: %v", c, orderFirst), func(t *testing.T) {
				s := &scene{T: t, cell: c}
				told, finish, last := s.ending(service.FinishRequest), s.ending(service.Finish), s.ending(service.LastOfAll)
				s.w = begin(t, c.config(t), told.Setup, finish.Setup, last.Setup)
				var clients []net.Conn
				for _, v := range []socketed{told, finish, last} {
					clients = append(clients, servertest.Dial(t, v.Addr()))
					repeats(t, clients[len(clients)-1], "before")
				}
				given := last.(heir)
				if !orderFirst {
					given.Give()
				}
				s.order(shutdown.Policy{Time: long, Drop: true})
				ended(t, clients[0], false)
				if orderFirst {
					given.Give()
				}
				ended(t, clients[2], false)
				repeats(t, clients[1], "it knows nothing of the order")
				require.NoError(t, clients[1].Close())
				s.drained()
			})
		}
	}
}
