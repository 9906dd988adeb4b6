package httpd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/smuggling"
	"github.com/daimon-go/daimon/listener"
)

// If two servers disagree about where a request ends, its sender can put a request of its own into the connection of
// another client. So where two could disagree, no handler is called and the connection ends. See RFC 9112 11.2. Lines,
// targets and hosts that two could read in two ways are in the tables of rules.
func TestNothingIsSmuggled(t *testing.T) {
	d := newDriver(t)
	for _, s := range smuggling.Requests() {
		http2Refuses(t, raw(s))
		for _, r := range []row{{says: s}, {says: get + "\n" + s}} {
			for _, pieces := range [][]string{{raw(r.says)}, strings.SplitAfter(raw(r.says), ""), halves(raw(r.says))} {
				k := &recorder{}
				c := d.dial(&httpd.Server{Handler: k.serve}, listener.Limits{}).send(pieces...)
				all := c.check(t)
				require.True(t, c.state == closed && all[len(all)-1].status >= 400, "%q: %s", s, statuses(all))
				require.NotContains(t, k.String(), "smuggled", "%q", s)
				require.Equal(t, strings.Count(r.says, get+"\n"), len(k.entries), "%q", s)
				require.NotContains(t, string(c.out), "smuggled")
			}
		}
	}
}

func halves(text string) []string { return []string{text[:len(text)/2], text[len(text)/2:]} }
