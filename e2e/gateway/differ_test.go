package gateway

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What arrives through the gateway, at the origin and at the client, is what arrives through nginx 1.22 or HAProxy 2.6: each line
// of it through one of them, and each line that arrives through both. Lines that differ are in the tables.
func TestGatewayAmongProxies(t *testing.T) {
	outside(t)
	var proxies []*proxy
	for _, start := range []func(*testing.T, *origin) *proxy{ours, engineX, haproxy} {
		proxies = append(proxies, start(t, newOrigin(t)))
	}
	for section, rows := range sections {
		for _, r := range rows {
			t.Run(section, func(t *testing.T) {
				var got [3][]string
				for i, p := range proxies {
					got[i] = p.passes(t, r)
				}
				require.Equal(t, r.differs, differences(got[0], got[1], got[2]),
					"%.300q, answered by %.300q: the gateway, nginx and HAProxy:\n%s\n\n%s\n\n%s",
					r.says, r.answer, strings.Join(got[0], "\n"), strings.Join(got[1], "\n"), strings.Join(got[2], "\n"))
				require.Equal(t, r.differs == "", r.why == "")
			})
		}
	}
}

// differences returns the lines that only a has, and those that only a has not.
func differences(a, b, c []string) string {
	all := map[string]bool{}
	for _, line := range a {
		if !slices.Contains(b, line) && !slices.Contains(c, line) {
			all["+"+line] = true
		}
	}
	for _, line := range b {
		if slices.Contains(c, line) && !slices.Contains(a, line) {
			all["-"+line] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), "; ")
}

// passes sends a row through, and returns what arrives at the client (<) and at the origin (>), in lines.
func (p *proxy) passes(t *testing.T, r row) (lines []string) {
	p.begin(r.answer)
	lines = p.says(t, r)
	for i, m := range p.finish(t) {
		lines = append(lines, m.marked("> ", i)...)
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], p.origin.at, "ORIGIN")
	}
	return lines
}

// requests finds the methods of requests.
var requests = regexp.MustCompile(`(?m)^(\S+) .* HTTP/`)

// says sends the text of a row, and then a further request if there can be one. It returns what comes back, in lines.
func (p *proxy) says(t *testing.T, r row) (lines []string) {
	k := p.dial(t)
	defer k.Close()
	parts := strings.Split(raw(r.says), "…")
	say := func() {
		if len(parts) > 0 {
			_, _ = io.WriteString(k, parts[0]) // if the proxy has enough of it, the answer says so
			parts = parts[1:]
		}
	}
	answer := func(i int, method string) (m *message) {
		m, err := k.answer(method, func(m *message) {
			lines = append(lines, m.marked("< ", i)...)
			say()
		})
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%s says nothing more after %q", p.name, lines)
		return m
	}
	say()
	for i, found := range requests.FindAllStringSubmatch(r.says, -1) {
		m := answer(i, found[1])
		if m == nil {
			return append(lines, "< no answer")
		}
		if strings.Contains(r.answer, "…") {
			p.heard <- struct{}{}
		}
		if m.read(); m.header.Get("X-Origin") == "" && m.status >= 400 {
			m = &message{line: m.line, trailer: m.trailer} // the proxy's own page
		}
		lines = append(lines, m.marked("< ", i)...)
		if m.status == http.StatusSwitchingProtocols && strings.Contains(r.says, "Upgrade") {
			all, err := io.ReadAll(k.in)
			require.NoError(t, err)
			return append(lines, "< "+string(all))
		}
	}
	if strings.HasPrefix(r.answer, "^") {
		return lines // what it says next would be content
	}
	_, _ = io.WriteString(k, raw("GET /probe HTTP/1.1\nHost: a\n\n"))
	switch m := answer(0, "GET"); {
	case m == nil:
		return append(lines, "< closed")
	case m.header.Get("X-Probed") == "":
		return append(lines, "< not asked for: "+m.line)
	}
	return append(lines, "< kept")
}

// marked returns what message i of one side means, in lines.
func (m *message) marked(side string, i int) (lines []string) {
	if i > 0 {
		side = fmt.Sprint(i+1, side)
	}
	for _, line := range append([]string{m.line}, m.said()...) {
		lines = append(lines, side+line)
	}
	return lines
}
