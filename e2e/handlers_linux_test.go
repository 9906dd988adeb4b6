package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/exectest"
)

// handlersOn starts serveHandlers, under another command if there is one.
func handlersOn(t *testing.T, how string, under ...string) *server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	line := append(under, self)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), asHandlers+"="+how)
	s := &server{Program: exectest.Start(t, cmd)}
	s.Listens(t, s.Said)
	s.at(s.Addr)
	return s
}

// A guest is a client of handlers.
type guest struct {
	net.Conn
	in *bufio.Reader
}

// guest connects a client for the length of the test.
func (s *server) guest(t *testing.T) *guest {
	t.Helper()
	c := dial(t, s.address)
	require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
	return &guest{c, bufio.NewReaderSize(c, 512)}
}

// ask sends a request.
func (g *guest) ask(method, path string) error {
	_, err := fmt.Fprintf(g, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", method, path)
	return err
}

// hear reads an answer.
func (g *guest) hear() (status int, body string, err error) {
	r, err := http.ReadResponse(g.in, nil)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// events begins a request with which event makes the waiting handlers go on. end ends it.
func (s *server) events(t *testing.T) (event, end func()) {
	t.Helper()
	g := s.guest(t)
	send := func(text string) func() {
		return func() {
			t.Helper()
			_, err := io.WriteString(g, text)
			require.NoError(t, err)
		}
	}
	send("POST /event HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")()
	return send("1\r\n!\r\n"), func() {
		t.Helper()
		send("0\r\n\r\n")()
		g.says(t, "")
		require.NoError(t, g.Close())
	}
}

// says wants this answer.
func (g *guest) says(t *testing.T, want string) {
	t.Helper()
	status, body, err := g.hear()
	require.NoError(t, err)
	require.Equal(t, 200, status, body)
	require.Equal(t, want, body)
}

// awaits wants n handlers to wait.
func (g *guest) awaits(t *testing.T, n int) {
	t.Helper()
	exectest.Eventually(t, patience, fmt.Sprintf("%d handlers that wait", n), func() bool {
		require.NoError(t, g.ask("GET", "/waiting"))
		_, body, err := g.hear()
		require.NoError(t, err)
		return body == fmt.Sprint(n)
	})
}

// A thousand handlers wait when a signal comes. Those that go on then are waited for, and their clients get their answers
// whole; the others are cut at the limit.
func TestSignalToAThousandHandlers(t *testing.T) {
	outside(t)
	t.Parallel()
	const n, never, limit = 900, 100, 20 * time.Second
	exectest.AllowDescriptors(t, n+never+200)
	s := handlersOn(t, fmt.Sprint("nethttp ", limit))
	whole, cut := make([]*guest, n), make([]*guest, never)
	for i := range whole {
		whole[i] = s.guest(t)
		require.NoError(t, whole[i].ask("GET", fmt.Sprint("/page/", i)))
	}
	for i := range cut {
		cut[i] = s.guest(t)
		require.NoError(t, cut[i].ask("GET", "/never"))
	}
	s.guest(t).awaits(t, n+never)
	begun := time.Now()
	s.Signal(t, unix.SIGTERM)
	for i, g := range whole {
		g.says(t, pageOf(fmt.Sprint(i)))
		_, err := g.in.ReadByte()
		require.Equal(t, io.EOF, err)
		require.NoError(t, g.Close())
	}
	require.Less(t, time.Since(begun), limit, "those that never return hold up the others")
	s.lasts(t, begun, limit)
	require.Contains(t, s.Said(), "dropped 100 tasks (100 × httpd: GET /never)")
	for _, g := range cut {
		_, _, err := g.hear()
		require.Error(t, err)
	}
}

// Ten thousand handlers wait, half of them behind a part of their answers. The threads of the schedulers have nothing to do
// for them, and others are served as before. Then all get an event.
func TestTenThousandHandlersThatWait(t *testing.T) {
	plainly(t)
	const n = 10_000
	exectest.AllowDescriptors(t, n+200)
	each := map[string]int{}
	for _, how := range []string{"net/http", "nethttp 10s"} {
		s := handlersOn(t, how)
		other := s.guest(t)
		alone := other.latency(t)
		memory := s.Resident(t)
		all := make([]*guest, n)
		for i := range all {
			all[i] = s.guest(t)
			require.NoError(t, all[i].ask("GET", []string{"/poll", "/events"}[i%2]))
		}
		other.awaits(t, n)
		each[how] = (s.Resident(t) - memory) / n
		reactors := s.reactors(t)
		spent := s.cpuOver(t, 3*time.Second)
		turns := switches(s.reactors(t)) - switches(reactors)
		beside := other.latency(t)
		event, end := s.events(t)
		event()
		for i, g := range all {
			g.says(t, []string{"event", "data: hello\n\ndata: event\n\n"}[i%2])
		}
		other.awaits(t, 0)
		end()
		t.Logf("%s: %d B resident for a handler that waits, %v of CPU time in 3 s, %d switches of the schedulers' threads, p99 %v alone and %v beside",
			how, each[how], spent, turns, alone, beside)
		if how != "net/http" {
			require.Less(t, spent, 100*time.Millisecond)
			require.Less(t, beside, 10*alone+grace)
			s.Signal(t, unix.SIGTERM)
			require.Zero(t, s.ExitWithin(t, prompt))
			require.Contains(t, s.Said(), "ended in order")
		}
		for _, g := range all {
			require.NoError(t, g.Close())
		}
	}
	require.Less(t, each["nethttp 10s"], each["net/http"]*5/4)
}

// latency returns the 99th of 300 exchanges.
func (g *guest) latency(t *testing.T) time.Duration {
	t.Helper()
	all := make([]time.Duration, 300)
	for i := range all {
		begun := time.Now()
		require.NoError(t, g.ask("GET", "/hello"))
		g.says(t, "hello")
		all[i] = time.Since(begun)
	}
	slices.Sort(all)
	return p99(all)
}

// Handlers that run go on when there are no descriptors left; what they open fails. New clients wait, and are served when
// others have left.
func TestHandlersWithoutDescriptors(t *testing.T) {
	plainly(t)
	s := handlersOn(t, "nethttp 10s", limited(64)...)
	event, end := s.events(t)
	busy := s.guest(t)
	busy.awaits(t, 0)
	all := make([]*guest, 100)
	for i := range all {
		all[i] = s.guest(t)
		require.NoError(t, all[i].ask("GET", []string{"/poll", "/file"}[i%2]))
	}
	waiting := steady(t, time.Second, "the handlers that wait", func() int64 {
		require.NoError(t, busy.ask("GET", "/waiting"))
		_, body, err := busy.hear()
		require.NoError(t, err)
		return number(body)
	})
	t.Logf("%d of %d handlers run", waiting, len(all))
	require.Greater(t, waiting, int64(20))
	require.Less(t, waiting, int64(60))
	require.NoError(t, busy.ask("GET", "/file"))
	status, body, err := busy.hear()
	require.NoError(t, err)
	require.Equal(t, 500, status)
	require.Contains(t, body, "too many open files")
	s.bears(t, idles[0])

	heard := make(chan string, len(all))
	for _, g := range all {
		go func() {
			_, body, err := g.hear()
			_ = g.Close()
			heard <- fmt.Sprint(body, err)
		}()
	}
	for n, failed := 0, 0; n < len(all); {
		select {
		case text := <-heard:
			if n++; strings.Contains(text, "too many open files") { // the client had the last one
				failed++
			} else {
				require.Equal(t, "event<nil>", text)
			}
			require.Less(t, failed, len(all)/2)
		case <-time.After(20 * time.Millisecond):
			event()
		}
	}
	end()
	s.Signal(t, unix.SIGTERM)
	require.Zero(t, s.ExitWithin(t, prompt))
	require.Contains(t, s.Said(), "ended in order")
}
