package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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

func start(t *testing.T, cfg act.Config, peers ...string) *chat {
	return startPaced(t, cfg, 0, peers...)
}

// startPaced is start for members that say one line in that time, after a burst.
func startPaced(t *testing.T, cfg act.Config, every time.Duration, peers ...string) *chat {
	c := &chat{Chat: New()}
	c.every, c.peers = every, peers
	c.lines = &service.Listener{Address: "127.0.0.1:0", Handler: c.Member, MaxConns: 10_000}
	site := &httpd.Server{Handler: c.Site()}
	c.web = &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve, MaxConns: 10_000}
	c.Running = servertest.Start(t, cfg, c.Setup, c.lines.Setup, c.web.Setup)
	return c
}

// end ends the chat, and requires that nothing is cut, and nothing else is logged.
func (c *chat) end(but ...string) {
	c.T.Helper()
	c.Group.Shutdown(servertest.Drain)
	require.NoError(c.T, c.End())
	for _, line := range c.Logs.All() {
		require.Contains(c.T, but, line.Message)
	}
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
	servertest.Send(t, ada, "/join #lobby\n")
	servertest.Expect(t, ada, "* Ada has come to lobby\n")
	servertest.Expect(t, ben, "* Ada has left kitchen\n")
	servertest.Send(t, ben, "/join kitchen\n/who\n") // nobody is there for a moment
	servertest.Expect(t, ben, "* Ben has come to kitchen\n* in kitchen: Ben\n")
	servertest.Send(t, ada, "/leave\n")
	servertest.Expect(t, ada, bye.text)
	hearEnd(t, ada)
	servertest.Send(t, ben, strings.Repeat("x", 2*maxLine))
	servertest.Expect(t, ben, refuse(tooLong).text)
	hearEnd(t, ben)
	c.end()
}

// A member that does not read leaves the room when it is far behind, and the others go on. It is told so when it reads on.
func TestAMemberThatDoesNotRead(t *testing.T) {
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
	require.NoError(t, deaf.(*net.TCPConn).SetReadBuffer(1<<20))
	all, err := io.ReadAll(deaf)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(all), "\n"+behind.text))
	require.NoError(t, deaf.Close())
	c.end("subscriptions to topics were too slow")
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
