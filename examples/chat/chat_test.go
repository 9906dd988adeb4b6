package main

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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
	lines, web *service.Listener
}

func start(t *testing.T, cfg act.Config) *chat { return startPaced(t, cfg, 0) }

// startPaced is start for members that say one line in that time, after a burst.
func startPaced(t *testing.T, cfg act.Config, every time.Duration) *chat {
	c := &chat{Chat: New()}
	c.every = every
	c.lines = &service.Listener{Address: "127.0.0.1:0", Handler: c.Member, MaxConns: 10_000}
	site := &httpd.Server{Handler: c.Site()}
	c.web = &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve, MaxConns: 10_000}
	c.Running = servertest.Start(t, cfg, c.Setup, c.lines.Setup, c.web.Setup)
	return c
}

// empty waits until all members have left and all rooms have ended. The hall stays.
func (c *chat) empty() {
	c.T.Helper()
	require.Eventually(c.T, func() bool { return c.sys.Alive() == 1 }, servertest.Timeout, time.Millisecond)
}

// end ends the chat, and requires that nothing is cut or logged and no process is left.
func (c *chat) end() {
	c.T.Helper()
	c.Group.Shutdown(servertest.Drain)
	require.NoError(c.T, c.End())
	require.Empty(c.T, c.Logs.All())
	require.Zero(c.T, c.sys.Alive())
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

func TestRooms(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	ada := c.client("Ada")
	servertest.Expect(t, ada, "Your name?\n* Ada has come to lobby\n")
	ben := c.client("Ben")
	servertest.Expect(t, ben, "Your name?\n* Ben has come to lobby\n")
	servertest.Expect(t, ada, "* Ben has come to lobby\n")
	servertest.Send(t, ada, "/join  kitchen \n")
	servertest.Expect(t, ada, "* Ada has come to kitchen\n")
	servertest.Expect(t, ben, "* Ada has left lobby\n")
	servertest.Send(t, ada, "nobody hears this\n/who\n")
	servertest.Expect(t, ada, "* in kitchen: Ada\n")
	servertest.Send(t, ben, "/who\n/join\n/shout\nnor this\n/join kitchen\n/who\n")
	servertest.Expect(t, ben, "* in lobby: Ben\n"+unclear.text+unclear.text+"* Ben has come to kitchen\n* in kitchen: Ada, Ben\n")
	servertest.Expect(t, ada, "* Ben has come to kitchen\n")
	servertest.Send(t, ben, "but this\r\n\n")
	servertest.Expect(t, ada, "Ben: but this\n")
	servertest.Send(t, ada, "/join lobby\n") // which was there before, and had ended
	servertest.Expect(t, ada, "* Ada has come to lobby\n")
	servertest.Expect(t, ben, "* Ada has left kitchen\n")
	servertest.Send(t, ben, "/join kitchen\n/who\n") // nobody is there for a moment
	servertest.Expect(t, ben, "* Ben has come to kitchen\n* in kitchen: Ben\n")
	servertest.Send(t, ada, "/leave\n")
	servertest.Expect(t, ada, bye.text)
	hearEnd(t, ada)
	servertest.Send(t, ben, strings.Repeat("x", 2*maxLine))
	servertest.Expect(t, ben, tooLong.text)
	hearEnd(t, ben)
	c.empty()
	c.end()
}

// A member that does not read is disconnected when it is far behind, and the others go on.
func TestAMemberThatDoesNotReadIsDisconnected(t *testing.T) {
	c := start(t, act.Config{Schedulers: 2})
	deaf, speaker := c.client("deaf"), c.client("speaker")
	require.NoError(t, deaf.(*net.TCPConn).SetReadBuffer(4<<10))
	go func() {
		for lines := []byte(strings.Repeat(strings.Repeat("x", 1000)+"\n", 32)); ; {
			if _, err := speaker.Write(lines); err != nil {
				return
			}
		}
	}()
	hearBehind(t, speaker, "* deaf has left lobby\n")
	servertest.Reset(t, speaker)
	_, err := io.Copy(io.Discard, deaf)
	require.ErrorIs(t, err, syscall.ECONNRESET)
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
