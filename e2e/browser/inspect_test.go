package browser

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/stretchr/testify/require"
)

// inspected looks at a server through the page of package inspect, while it has many connections, and when it has gone.
func inspected(t *testing.T, p *tab) {
	const idle = 50
	s := serve(t, t.TempDir(), "-inspect", "127.0.0.1:0")
	page := pageOf(t, s.Program)
	var conns []net.Conn
	for range idle {
		c := s.idle(t)
		defer c.Close()
		conns = append(conns, c)
	}

	p.looksLike(t, "light", 1024, 640)
	require.EqualValues(t, 200, p.visit(t, page))
	p.shows(t, "state", "Live")
	p.shows(t, "services", s.Addr)
	p.shows(t, "sum", strconv.Itoa(idle)+" tasks")
	eventually(t, "the load of all schedulers", func() bool {
		return run[bool](t, p, `() => [...document.querySelectorAll(".lane")].length > 0 &&
			[...document.querySelectorAll(".lane polyline")].every(e => /^\d+,/.test(e.getAttribute("points")))`)
	})
	p.pictured(t, "inspect-overview")

	require.Equal(t, strings.Replace(page, "/?", "/last?", 1),
		run[string](t, p, `() => document.querySelector("a[data-path=last]").href`), "the last events, with the token")

	local := conns[7].LocalAddr().String()
	run[any](t, p, `text => { document.getElementById("find").value = text; document.querySelector("#ask button").click() }`, local)
	p.shows(t, "found", "1 of ")
	p.shows(t, "tasks", local)
	run[any](t, p, `() => { document.getElementById("find").value = ""; document.querySelector("#ask button").click() }`)
	p.shows(t, "tree", fmt.Sprintf("tcp %s\t%d", s.Addr, idle))
	run[any](t, p, `() => document.getElementById("h-tasks").scrollIntoView()`)
	p.pictured(t, "inspect-tasks")

	s.terminate(t)
	s.ends(t)
	p.shows(t, "state", "Not connected")
	origin, _, _ := strings.Cut(page, "/?")
	p.staysAt(t, origin)
}

// idle returns a connection that has had one answer, and that the server keeps for longer than this test takes: one
// that sends no head at all is closed after 10 s.
func (s *server) idle(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodHead})
	require.NoError(t, err)
	require.False(t, answer.Close)
	return c
}

// pageOf finds the address of the page of package inspect in the log.
func pageOf(t *testing.T, p *exectest.Program) string {
	t.Helper()
	page := regexp.MustCompile(`inspect at (\S+)`).FindStringSubmatch(p.Said())
	require.NotNil(t, page, p.Said())
	return page[1]
}

// stalled looks at a server with a scheduler that is stuck: live, on a page that was there before.
func stalled(t *testing.T, p *tab) {
	s := listen(t, "e2e/testdata/stall", "-reactors", "2", "-inspect", "127.0.0.1:0")
	p.looksLike(t, "light", 1280, 800)
	require.EqualValues(t, 200, p.visit(t, pageOf(t, s.Program)))
	p.shows(t, "state", "Live")
	require.True(t, run[bool](t, p, `() => document.getElementById("stalls").closest("section").hidden`))

	c, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	for _, want := range []string{"so far", c.LocalAddr().String(), "main.go:", "tcp " + s.Addr} {
		p.shows(t, "stalls", want)
	}
	require.Regexp(t, `computing|waiting for a CPU`, p.text(t, "stalls"), "the second on a busy machine: package inspect tests the others")
	p.shows(t, "findings", "is held up by a turn of tcp "+s.Addr)
	p.shows(t, "schedulers", "no answer; as of")
	p.pictured(t, "inspect-stall")
	run[any](t, p, `() => { document.querySelector("#stalls details").open = true; document.getElementById("h-stalls").scrollIntoView() }`)
	p.shows(t, "stalls", "main.thumbnail")
	p.pictured(t, "inspect-stack")

	s.Signal(t, syscall.SIGWINCH)
	p.shows(t, "stalls", "ended since the start: 1 stall")
	eventually(t, "nothing that is striking", func() bool { return run[bool](t, p, `() => !document.getElementById("nofindings").hidden`) })
	s.Stop(t)
}
