package browser

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// pageOf finds the address of the page of package inspect in the log.
func pageOf(t *testing.T, p *exectest.Program) string {
	t.Helper()
	page := regexp.MustCompile(`inspect at (\S+)`).FindStringSubmatch(p.Said())
	require.NotNil(t, page, p.Said())
	return page[1]
}

// stalled looks at a server with a scheduler that is stuck: live, on a page that was there before.
func stalled(t *testing.T, p *tab) {
	s := exectest.Start(t, exectest.Of("../testdata/stall").Command(t, "-reactors", "2", "-inspect", "127.0.0.1:0"))
	s.Listens(t, s.Said)
	p.looksLike(t, "light", 1280, 800)
	require.EqualValues(t, 200, p.visit(t, pageOf(t, s)))
	p.shows(t, "state", "Live")
	require.True(t, run[bool](t, p, `() => document.getElementById("stalls").hidden`))

	c, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	for _, want := range []string{"has taken", c.LocalAddr().String(), "main.go:", "tcp " + s.Addr} {
		p.shows(t, "stall-list", want)
	}
	require.Regexp(t, `: (computing|waiting for a CPU)`, p.text(t, "stall-list"), "the second on a busy machine: the others are in e2e")
	p.shows(t, "findings", "is held up by a turn of tcp "+s.Addr)
	p.shows(t, "lanes", "no answer for")
	p.pictured(t, "inspect-stall")
	run[any](t, p, `() => { document.querySelector("#stall-list details").open = true; document.getElementById("h-stalls").scrollIntoView() }`)
	p.shows(t, "stall-list", "main.thumbnail")
	p.pictured(t, "inspect-stack")

	s.Signal(t, syscall.SIGWINCH)
	p.shows(t, "stall-list", " took ")
	eventually(t, "nothing that is striking", func() bool { return run[bool](t, p, `() => !document.getElementById("nofindings").hidden`) })
	s.Stop(t)
}

// crowded looks at a server of 15,000 connections. The page stays as quick as with few: it gets sums, and 500 tasks at most.
func crowded(t *testing.T, p *tab) {
	const n = 15_000
	exectest.AllowDescriptors(t, n+500)
	s := exectest.Start(t, exectest.Of("../../examples/echo").Command(t, "-addr", "127.0.0.1:0", "-inspect", "127.0.0.1:0"))
	s.Listens(t, s.Said)
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", s.Addr)
		require.NoError(t, err)
		defer c.Close()
		conns[i] = c
	}
	p.looksLike(t, "light", 1280, 800)
	require.EqualValues(t, 200, p.visit(t, pageOf(t, s)))
	p.shows(t, "state", "Live")
	p.shows(t, "sum", "15,000 tasks")
	p.shows(t, "services", "15,000")
	eventually(t, "the load of all schedulers", func() bool {
		return run[bool](t, p, `() => [...document.querySelectorAll(".lane p:first-child")].every(e => e.textContent.startsWith("load"))`)
	})
	p.pictured(t, "inspect-crowd")
	var listing float64
	eventually(t, "an answer of all schedulers", func() bool { // on a busy machine one may take more than 100 ms
		listing = run[float64](t, p, `async () => { const begun = performance.now(); await ask(); document.body.offsetHeight; return performance.now() - begun }`)
		return strings.Contains(run[string](t, p, `() => document.getElementById("tree").textContent`), "tcp "+s.Addr+": 15,000")
	})
	p.shows(t, "found", "the first 500 of them below")
	require.Equal(t, strconv.Itoa(501), run[string](t, p, `() => String(document.querySelectorAll("#tasks tr").length)`))
	update := run[float64](t, p, `async () => {
		const report = await (await get(url("json"))).text();
		const begun = performance.now();
		show(JSON.parse(report));
		document.body.offsetHeight; // the layout as well
		return performance.now() - begun;
	}`)
	t.Logf("%d connections: %.0f ms to list tasks, %.1f ms to show a report", n, listing, update)
	require.Less(t, listing, 3000.0)
	require.Less(t, update, 250.0)
	run[any](t, p, `() => document.getElementById("h-tasks").scrollIntoView()`)
	p.pictured(t, "inspect-crowd-tasks")
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	p.shows(t, "sum", "0 tasks on")
	s.Stop(t)
}
