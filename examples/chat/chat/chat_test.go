package chat

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// chat is a Chat that runs, with its two services.
type chat struct {
	*servertest.Running
	*Chat
	lines, web *service.TCP
}

func start(t *testing.T, cfg act.Config) *chat { return startPaced(t, cfg, 0) }

// startPaced is start for members that say one line in that time, after a burst.
func startPaced(t *testing.T, cfg act.Config, every time.Duration) *chat {
	c := &chat{Chat: New()}
	c.every = every
	c.lines = &service.TCP{Address: "127.0.0.1:0", Handler: c.Member, MaxConns: 10_000}
	site := &httpd.Server{Handler: c.Site()}
	c.web = &service.TCP{Address: "127.0.0.1:0", Handler: site.Serve, MaxConns: 10_000}
	c.Running = servertest.Start(t, cfg, c.Setup, c.lines.Setup, c.web.Setup)
	return c
}

// look asks for a room without creating one.
type look struct {
	name  string
	reply process.Reply[process.Ref[message]]
}

func (q look) at(h *hall, p *process.Self[query]) { q.reply.Send(p, h.rooms[q.name]) }

// census asks for the number of members.
type census struct{ reply process.Reply[int] }

func (x census) at(r *room, p *process.Self[message]) { x.reply.Send(p, len(r.seats)) }

// room returns the room of that name; the zero Ref if there is none.
func (c *chat) room(name string) process.Ref[message] {
	ref, err := process.Call(c.patience(), c.hall, func(r process.Reply[process.Ref[message]]) query { return look{name, r} })
	require.NoError(c.T, err)
	return ref
}

func (c *chat) patience() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Timeout)
	c.T.Cleanup(cancel)
	return ctx
}

// members returns the number of members in a room.
func (c *chat) members(name string) int {
	n, err := process.Call(c.patience(), c.room(name), func(r process.Reply[int]) message { return census{r} })
	if err != nil {
		require.ErrorIs(c.T, err, process.ErrDead)
	}
	return n
}

// waitFor waits until the lobby has that many members.
func (c *chat) waitFor(n int) {
	c.T.Helper()
	require.Eventually(c.T, func() bool { return c.members(lobby) == n }, servertest.Timeout, time.Millisecond)
}

// empty waits until all members have left and all rooms have ended. The hall stays.
func (c *chat) empty() {
	c.T.Helper()
	require.Eventually(c.T, func() bool { return c.sys.Stats().Alive == 1 }, servertest.Timeout, time.Millisecond)
}

// end ends the chat, and requires that nothing is cut or logged and no process is left.
func (c *chat) end() {
	c.T.Helper()
	c.Group.Shutdown(servertest.Drain)
	require.NoError(c.T, c.End())
	require.Empty(c.T, c.Logs.All())
	require.Zero(c.T, c.sys.Stats().Alive)
}

// client returns a connection that has sent a name.
func (c *chat) client(name string) net.Conn {
	conn := servertest.Dial(c.T, c.lines.Addr())
	servertest.Send(c.T, conn, name+"\n")
	return conn
}

// hearEnd reads up to the end, and closes, for which the server would otherwise wait some seconds.
func hearEnd(t *testing.T, c net.Conn) {
	t.Helper()
	servertest.ExpectEOF(t, c)
	require.NoError(t, c.Close())
}

func TestRoomsComeAndGo(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada, ben := c.client("Ada"), c.client("Ben")
	c.waitFor(2)
	lobbyAtFirst := c.room(lobby)
	servertest.Send(t, ada, "/join  kitchen \n")
	hearBehind(t, ada, "* Ada has come to kitchen\n")
	hearBehind(t, ben, "* Ada has left lobby\n")
	kitchen := c.room("kitchen")
	require.EqualValues(t, 3, c.sys.Stats().Alive, "the hall and two rooms")

	servertest.Send(t, ada, "nobody hears this\n/who\n")
	servertest.Expect(t, ada, "* in kitchen: Ada\n")
	servertest.Send(t, ben, "/who\n/join\n/shout\nnor this\n/join kitchen\n/who\n")
	servertest.Expect(t, ben, "* in lobby: Ben\n"+unclear.text+unclear.text+"* Ben has come to kitchen\n* in kitchen: Ada, Ben\n")
	servertest.Expect(t, ada, "* Ben has come to kitchen\n")
	servertest.Send(t, ben, "but this\n")
	servertest.Expect(t, ada, "Ben: but this\n")
	gone := servertest.Receive(t, ends(lobbyAtFirst))
	require.Equal(t, process.Normal, gone.Reason)
	require.Eventually(t, func() bool { return c.room(lobby).ID() == 0 }, servertest.Timeout, time.Millisecond)

	servertest.Send(t, ada, "/join lobby\n")
	servertest.Expect(t, ada, "* Ada has come to lobby\n")
	require.NotEqual(t, lobbyAtFirst, c.room(lobby))
	require.NotZero(t, c.room(lobby).ID())
	servertest.Expect(t, ben, "* Ada has left kitchen\n")
	servertest.Send(t, ben, "/join kitchen\n/who\n") // in one packet
	servertest.Expect(t, ben, "* Ben has come to kitchen\n* in kitchen: Ben\n")
	require.Equal(t, process.Normal, servertest.Receive(t, ends(kitchen)).Reason, "nobody was there for a moment")
	require.NoError(t, ada.Close())
	require.NoError(t, ben.Close())
	c.empty()
	c.end()
}

// hearBehind reads up to and with text.
func hearBehind(t *testing.T, c net.Conn, text string) {
	t.Helper()
	var all []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(all), text); all = append(all, one[0]) {
		_, err := io.ReadFull(c, one)
		require.NoError(t, err, "after %q", all)
	}
}

// ends returns a channel that gets the notice of the end of a process.
func ends(of process.AnyRef) <-chan process.Notice {
	c := make(chan process.Notice, 1)
	go func() {
		for f := process.Ended(of); ; time.Sleep(time.Millisecond) {
			if n, err := f.Value(); err == nil {
				c <- n
				return
			}
		}
	}()
	return c
}

// bomb is a message that makes a room panic.
type bomb struct{}

func (bomb) at(*room, *process.Self[message]) { panic("a bug") }

// trap is a room that panics when a member enters.
type trap struct{ room }

func (*trap) Act(p *process.Self[message]) act.Directive {
	if _, ok := p.Receive(); ok {
		panic("a trap")
	}
	return act.Wait
}

// A member that cannot enter any room is told so after a number of tries.
func TestARoomThatPanicsEachTimeIsGivenUp(t *testing.T) {
	made := 0
	makeRoom = func(name string) process.Action[message] {
		made++
		return &trap{room: *newRoom(name)}
	}
	defer func() { makeRoom = aRoom }()
	c := start(t, act.Config{Schedulers: 2})
	ada := c.client("Ada")
	servertest.Expect(t, ada, "Your name?\n"+noWay.text)
	hearEnd(t, ada)
	c.empty()
	require.Equal(t, 1+maxTries, made)
	c.Logs.TakeAll()
	c.end()
}
