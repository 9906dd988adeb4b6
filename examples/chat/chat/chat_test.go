package chat

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/lab"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	lab.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// chat is a running one, over two reactors.
type chat struct {
	*lab.Running
	server service.TCP
}

func start(t *testing.T, cfg act.Config) *chat {
	c := &chat{server: service.TCP{Address: "127.0.0.1:0", Handler: Member}}
	c.Running = lab.Start(t, cfg, c.server.Setup)
	return c
}

// members is how many there are on each reactor.
func (c *chat) members() (n [2]int) {
	for i := range n {
		c.On(i, func(s *act.Scheduler) { n[i] = len(rooms.Get(s).members) })
	}
	return n
}

// waitFor waits until so many members are in the rooms.
func (c *chat) waitFor(n int) {
	c.T.Helper()
	require.Eventually(c.T, func() bool { m := c.members(); return m[0]+m[1] == n }, lab.Patience, time.Millisecond)
}

// end wants an orderly end, with nothing cut and nothing logged, once all members have left.
func (c *chat) end() {
	c.T.Helper()
	c.Group.Shutdown(lab.Drain)
	require.NoError(c.T, c.End())
	require.Empty(c.T, c.Logs.All())
}

// client is somebody who has said a name and hears lines.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Scanner
}

func (c *chat) client(name string, dialer net.Dialer) *client {
	conn, err := dialer.Dial("tcp", c.server.Addr().String())
	require.NoError(c.T, err)
	require.NoError(c.T, conn.SetDeadline(time.Now().Add(lab.Patience)))
	c.T.Cleanup(func() { _ = conn.Close() })
	lab.Say(c.T, conn, name+"\n")
	return &client{c.T.(*testing.T), conn, bufio.NewScanner(conn)}
}

// hears returns the next line that is not the server's.
func (c *client) hears() (string, error) {
	for c.lines.Scan() {
		if line := c.lines.Text(); !strings.HasPrefix(line, "* ") && line != "Your name?" {
			return line, nil
		}
	}
	return "", fmt.Errorf("the end: %w", c.lines.Err())
}

// 20 members are on one reactor alone once in 500,000 times.
func TestEachLineOnceAndInTheOrderOfItsSpeaker(t *testing.T) { lab.UnderEach(t, eachLineOnce) }

func eachLineOnce(t *testing.T, cfg act.Config) {
	const members, lines = 20, 50
	c := start(t, cfg)
	var all []*client
	for i := range members {
		all = append(all, c.client(fmt.Sprintf("m%d", i), net.Dialer{}))
	}
	c.waitFor(members)
	require.NotContains(t, c.members(), 0, "a reactor without members")

	type heard struct {
		by    int
		lines map[string][]string // by their speakers
		err   error
	}
	results := make(chan heard, members)
	for i, m := range all {
		go func() {
			for k := range lines {
				fmt.Fprintf(m, "%d\n", k) // what goes wrong is noticed by those who do not hear it
			}
		}()
		go func() {
			h := heard{by: i, lines: map[string][]string{}}
			for range (members - 1) * lines {
				var line string
				if line, h.err = m.hears(); h.err != nil {
					break
				}
				name, text, _ := strings.Cut(line, ": ")
				h.lines[name] = append(h.lines[name], text)
			}
			results <- h
		}()
	}
	var want []string
	for k := range lines {
		want = append(want, fmt.Sprint(k))
	}
	for range members {
		h := <-results
		require.NoError(t, h.err)
		for i := range members {
			if i != h.by {
				require.Equal(t, want, h.lines[fmt.Sprintf("m%d", i)], "m%d as heard by m%d", i, h.by)
			}
		}
	}
	for _, m := range all { // nothing comes twice: behind the last line is the end
		require.NoError(t, m.Conn.(*net.TCPConn).CloseWrite())
	}
	for _, m := range all {
		line, err := m.hears()
		require.Empty(t, line)
		require.Error(t, err)
	}
	c.waitFor(0)
	c.end()
}

func TestMembersComeAndLeave(t *testing.T) { lab.UnderEach(t, comeAndLeave) }

func comeAndLeave(t *testing.T, cfg act.Config) {
	c := start(t, cfg)
	ada := c.client("Ada", net.Dialer{})
	c.waitFor(1)
	lab.Hear(t, ada, "Your name?\n* Ada has come\n")
	ben := c.client("Ben", net.Dialer{})
	lab.Hear(t, ada, "* Ben has come\n")
	lab.Say(t, ben, "hello\r\n\n")
	lab.Hear(t, ada, "Ben: hello\n")
	lab.Rush(t, ben.Conn)
	lab.Hear(t, ada, "* Ben has left\n")
	require.NoError(t, ada.Close())
	c.waitFor(0)
	c.end()
}

// The speaker never has more under way than it knows to be heard, so only the one who does not read can be
// above the mark. Small buffers, so that not the system queues for it.
func TestWhoDoesNotReadIsCutOffAndHoldsNobody(t *testing.T) { lab.UnderEach(t, cutsOff) }

func cutsOff(t *testing.T, cfg act.Config) {
	c := start(t, cfg)
	deaf := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
	}}
	speaker, reader := c.client("speaker", net.Dialer{}), c.client("reader", net.Dialer{})
	c.client("deaf", deaf)
	c.waitFor(3)
	batch := slices.Repeat([]string{strings.Repeat("x", 1000)}, 32)
	left := false
	for range 500 { // 16 MB, many times what the system queues
		lab.Say(t, speaker, strings.Join(batch, "\n")+"\n")
		for range batch {
			line, err := reader.hears()
			require.NoError(t, err)
			require.Equal(t, "speaker: "+batch[0], line)
		}
		if m := c.members(); m[0]+m[1] == 2 {
			left = true
			break
		}
	}
	require.True(t, left, "nobody was cut off")
	require.NoError(t, speaker.Close())
	require.NoError(t, reader.Close())
	c.waitFor(0)
	c.end()
}

// An inbox of two takes less than is said at a time: who speaks has to wait, and nothing is lost.
func TestWhoSpeaksTooFastIsHeldUp(t *testing.T) { lab.UnderEach(t, heldUp) }

func heldUp(t *testing.T, cfg act.Config) {
	cfg.Inbox = 2
	c := start(t, cfg)
	const each, speakers = 500, 6
	var listeners []*client
	for range 8 {
		listeners = append(listeners, c.client("listener", net.Dialer{}))
	}
	c.waitFor(8)
	for range speakers {
		go func() {
			conn, err := net.Dial("tcp", c.server.Addr().String())
			if err != nil {
				return
			}
			defer conn.Close()
			go func() {
				_, _ = conn.Write([]byte("s\n" + strings.Repeat("l\n", each)))
				_ = conn.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(io.Discard, conn) // a close with something unread would be a reset
		}()
	}
	results := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() {
			for range speakers * each {
				if _, err := l.hears(); err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	for range listeners {
		require.NoError(t, <-results)
	}
	for _, l := range listeners {
		require.NoError(t, l.Close())
	}
	c.waitFor(0)
	c.end()
}
