package publish_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/publish/publish"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// start returns a running server on two schedulers.
func start(t *testing.T, limits listener.Limits) (*servertest.Running, net.Addr) {
	server := &service.TCP{Address: "127.0.0.1:0", Handler: publish.Serve, Limits: limits, MaxConns: 100}
	r := servertest.Start(t, act.Config{Schedulers: 2}, server.Setup)
	return r, server.Addr()
}

// end ends the server, and requires that nothing is cut or logged.
func end(t *testing.T, r *servertest.Running) {
	t.Helper()
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	require.Empty(t, r.Logs.All())
}

func TestAnswers(t *testing.T) {
	r, at := start(t, listener.Limits{})
	c := servertest.Dial(t, at)
	for _, row := range []struct{ say, hear string }{
		{"hello", "! say sub TOPIC or pub TOPIC TEXT\n"},
		{"sub ", "! a topic has 1 to 64 bytes and does not begin with +, ! or #\n"},
		{"sub #1", "! a topic has 1 to 64 bytes and does not begin with +, ! or #\n"},
		{"sub " + strings.Repeat("x", 65), "! a topic has 1 to 64 bytes and does not begin with +, ! or #\n"},
		{"sub a b", "! a topic has no blanks\n"},
		{"pub a", "! there is no text\n"},
		{"pub z nobody hears this\nsub a\nsub a", "+ a\n+ a\n"},
		{"pub b nor this\npub a one\r\npub a two words", "a one\na two words\n"},
	} {
		servertest.Send(t, c, row.say+"\n")
		servertest.Expect(t, c, row.hear)
	}
	for i := 1; i < 64; i++ {
		servertest.Send(t, c, fmt.Sprintf("sub t%d\n", i))
		servertest.Expect(t, c, fmt.Sprintf("+ t%d\n", i))
	}
	servertest.Send(t, c, "sub t64\n")
	servertest.Expect(t, c, "! there are 64 subscriptions already\n")
	servertest.Send(t, c, "pub "+strings.Repeat("x", publish.MaxLine)+"\n")
	servertest.Expect(t, c, "! a line is too long\n")
	servertest.ExpectEOF(t, c)
	require.NoError(t, c.Close())
	end(t, r)
}

// slowSubscriber has a client that has subscribed to "a", and whose socket takes nothing from then on, beside one that publishes.
func slowSubscriber(t *testing.T) (l *servertest.Stepped, c *listener.Conn, peer, publisher net.Conn, end func()) {
	l = servertest.New(t, act.Config{})
	limits := listener.Limits{High: 2 * publish.MaxLine, Overflow: listener.Drop}
	c, peer = l.Conn("unix", limits)
	other, publisher := l.Conn("unix", limits)
	l.S.Spawn(publish.Serve(c))
	l.S.Spawn(publish.Serve(other))
	servertest.Send(t, peer, "sub a\n")
	l.Until("the answer", func() bool { return l.OS.Count("send") > 0 })
	servertest.Expect(t, peer, "+ a\n")
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	return l, c, peer, publisher, func() {
		other.Abort()
		l.For(0)
	}
}

// What was broken: an answer for which there was no room was dropped, as messages are.
func TestASlowSubscriberLosesMessagesAndNoAnswer(t *testing.T) {
	l, c, peer, publisher, end := slowSubscriber(t)
	line, topic := "a "+strings.Repeat("x", publish.MaxLine-len("pub a \n"))+"\n", strings.Repeat("t", 60)
	servertest.Send(t, publisher, strings.Repeat("pub "+line, 5))
	l.Until("messages are lost", func() bool { return c.Dropped() == 3 })
	servertest.Send(t, peer, "sub "+topic+"\n")
	l.Until("it has been read", func() bool { return l.OS.Count("receive") > 2 })
	l.For(0)
	l.OS.Fail = nil
	require.NoError(t, c.Flush())
	l.For(0)
	servertest.Expect(t, peer, line+line+"+ "+topic+"\n")
	l.OS.Forget()
	servertest.Send(t, publisher, "pub a last\n")
	l.Until("it is sent", func() bool { return l.OS.Count("send") > 0 })
	servertest.Expect(t, peer, "# 3 lost\na last\n")
	c.Abort()
	end()
}

// What was broken: at the end a subscriber that was too slow lost the last answers, and its connection was closed in order.
func TestASlowSubscriberIsResetAtTheEnd(t *testing.T) {
	for name, x := range map[string]struct {
		say  string
		room int
	}{
		"no room for the last answer":            {"", 8},
		"room for the last, and an answer waits": {"sub " + strings.Repeat("t", 60) + "\n", 40},
	} {
		line := "a " + strings.Repeat("x", publish.MaxLine-x.room/2-len("a \n")) + "\n"
		l, c, peer, publisher, end := slowSubscriber(t)
		servertest.Send(t, publisher, strings.Repeat("pub "+line, 3))
		l.Until("there is no room", func() bool { return c.Dropped() > 0 })
		l.For(0)
		servertest.Send(t, peer, x.say)
		l.Until("it has been read", func() bool { return x.say == "" || l.OS.Count("receive") > 2 })
		l.For(0)
		l.S.Shutdown(servertest.Drain)
		l.For(0)
		require.Equal(t, net.ErrClosed, c.Flush(), name)
		end()
	}
}

// The subscribers are on both reactors, and four publishers write at the same time.
func TestAllSubscribersGetTheSameMessagesInOneOrder(t *testing.T) {
	const subscribers, publishers, messages = 16, 4, 200
	r, at := start(t, listener.Limits{High: 1 << 20})
	heard := make(chan string, subscribers)
	for range subscribers {
		c := servertest.Dial(t, at)
		servertest.Send(t, c, "sub news\n")
		servertest.Expect(t, c, "+ news\n")
		go func() {
			var all strings.Builder
			in := bufio.NewScanner(c)
			for range publishers * messages {
				in.Scan()
				fmt.Fprintln(&all, in.Text())
			}
			_ = c.Close()
			heard <- all.String()
		}()
	}
	for p := range publishers {
		c := servertest.Dial(t, at)
		go func() {
			for n := range messages {
				fmt.Fprintf(c, "pub news %d %d\n", p, n)
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}()
	}
	first := servertest.Receive(t, heard)
	for p := range publishers {
		for n := range messages {
			require.Contains(t, first, fmt.Sprintf("news %d %d\n", p, n))
		}
	}
	for range subscribers - 1 {
		require.Equal(t, first, servertest.Receive(t, heard))
	}
	end(t, r)
}

// In an upgrade, or at an end, nobody misses a message without being told: a subscriber is sent away, and a publisher is refused.
func TestClientsLeaveAtOnce(t *testing.T) {
	server := &service.TCP{Address: "127.0.0.1:0", Handler: publish.Serve}
	r := servertest.Start(t, act.Config{Schedulers: 1}, server.Setup)
	reads, writes := servertest.Dial(t, server.Addr()), servertest.Dial(t, server.Addr())
	for _, c := range []net.Conn{reads, writes} {
		servertest.Send(t, c, "sub news\n")
		servertest.Expect(t, c, "+ news\n")
	}
	r.On(0, func(s *act.Scheduler) { // which reads nothing meanwhile
		servertest.Send(t, writes, "pub news one\npub news two\n")
		s.Group().Shutdown(servertest.Drain)
	})
	servertest.Expect(t, reads, "! the server ends: connect again\n")
	servertest.Expect(t, writes, strings.Repeat("! the server ends: connect again\n", 3))
	for _, c := range []net.Conn{reads, writes} {
		servertest.ExpectEOF(t, c)
		require.NoError(t, c.Close())
	}
	require.NoError(t, r.End())
}
