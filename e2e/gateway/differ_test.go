package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row is a request, and what is done with it.
type row struct {
	name string
	says string // of the client; after "…" it goes on when it has been answered 1xx
	// answer is what the origin says, ok if it is empty; "^" before it: as soon as it has the head; "!" behind it: and then
	// closes the connection. After "…" it goes on when the client has the head of the answer.
	answer string
	// differs are the lines that the gateway alone has (+) and that it alone has not (-), joined by "; ", and why.
	differs, why string
	asks         string // the methods, if there are several requests
}

func (r *row) methods() string {
	first, _, _ := strings.Cut(r.says, " ")
	return cmp.Or(r.asks, strings.TrimLeft(first, "\n"))
}

func (r *row) answers() string { return cmp.Or(r.answer, ok+"Content-Length: 2\n\nok") }

// What arrives through the gateway, at the origin and at the client, is what arrives through nginx or HAProxy: each line of it
// through one of them, and each line that arrives through both. Lines that differ are in the tables.
func TestGatewayAmongProxies(t *testing.T) {
	outside(t)
	var proxies []*proxy
	for _, start := range []func(*testing.T, *origin) *proxy{ours, engineX, haproxy} {
		proxies = append(proxies, start(t, newOrigin(t)))
	}
	for section, rows := range sections {
		t.Run(section, func(t *testing.T) {
			for _, r := range rows {
				t.Run(r.name, func(t *testing.T) {
					var got [3][]string
					for i, p := range proxies {
						got[i] = p.passes(t, r)
					}
					require.Equal(t, r.differs, differences(got[0], got[1], got[2]), "the gateway, nginx and HAProxy:\n%s\n\n%s\n\n%s",
						strings.Join(got[0], "\n"), strings.Join(got[1], "\n"), strings.Join(got[2], "\n"))
					require.Equal(t, r.differs == "", r.why == "")
				})
			}
		})
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
