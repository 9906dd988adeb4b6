package browser

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// inspected looks at a server through the page of package inspect, while it has many connections, and when it has gone.
func inspected(t *testing.T, p *tab) {
	const idle = 300
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
			[...document.querySelectorAll(".lane")].every(e => /^load \d+ %/.test(e.querySelector("p").textContent))`)
	})
	p.pictured(t, "inspect-overview")

	require.Equal(t, strings.Replace(page, "/?", "/last?", 1),
		run[string](t, p, `() => document.querySelector("a[data-path=last]").href`), "the last events, with the token")

	local := conns[7].LocalAddr().String()
	run[any](t, p, `text => { document.getElementById("find").value = text; document.querySelector("#ask button").click() }`, local)
	p.shows(t, "found", "1 of ")
	p.shows(t, "tasks", local)
	run[any](t, p, `() => { document.getElementById("find").value = ""; document.querySelector("#ask button").click() }`)
	p.shows(t, "tree", fmt.Sprintf("tcp %s: %d", s.Addr, idle))
	run[any](t, p, `() => document.getElementById("h-tasks").scrollIntoView()`)
	p.pictured(t, "inspect-tasks")
	p.usesKeys(t, local)

	s.terminate(t)
	s.ends(t, patience)
	p.shows(t, "state", "Not connected")
	require.Contains(t, p.exchanges(t)[0].header["Content-Security-Policy"], "default-src 'none'")
	require.Equal(t, []string{}, foreign(t, p, page))
}

// usesKeys asks for the task of a connection without a mouse: Tab reaches all that can be used, in the order in which it is shown.
func (p *tab) usesKeys(t *testing.T, local string) {
	t.Helper()
	key := func(keys string) {
		t.Helper()
		require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
	}
	run[any](t, p, `() => { document.activeElement.blur(); getSelection().setPosition(document.querySelector("header")); scrollTo(0, 0) }`)
	var reached []string
	for range 40 {
		key(kb.Tab)
		name := run[string](t, p, `() => {
			const e = document.activeElement;
			return e.id || e.dataset.path || (e.closest("form") && e.tagName) || (e.closest("#tree") && "tree") || "";
		}`)
		if name != "" {
			reached = append(reached, name)
		}
		if name == "tree" {
			break
		}
	}
	require.Equal(t, []string{"text", "last", "debug/pprof/", "find", "BUTTON", "again", "tree"}, reached)
	require.True(t, run[bool](t, p, `() => document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`),
		"it is seen where the keys go")
	key(kb.Enter)
	require.True(t, run[bool](t, p, `() => document.activeElement.parentElement.open`), "a row of the tree opens")

	run[any](t, p, `() => document.getElementById("find").focus()`)
	key(local + kb.Enter)
	p.shows(t, "found", "1 of ")
	p.shows(t, "tasks", local)
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

// foreign returns what the page has asked of other servers than its own.
func foreign(t *testing.T, p *tab, page string) []string {
	origin, _, _ := strings.Cut(page, "/?")
	all := []string{}
	for _, x := range p.exchanges(t) {
		if !strings.HasPrefix(x.url, origin+"/") {
			all = append(all, x.url)
		}
	}
	return all
}
