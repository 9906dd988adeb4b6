package browser

import (
	"fmt"
	"net"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
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
