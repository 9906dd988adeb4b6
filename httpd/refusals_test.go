package httpd_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
)

// What the server refuses by itself it answers with a status and nothing of the client's: RFC 9110 15.5, 6.6.1 (Date),
// RFC 9112 9.6 (close, in stages, so that the answer is not destroyed by what the client still sends).
func TestRefusals(t *testing.T) {
	const marker = "xyzzy"
	reading := httpd.WithBody(10, func(w *httpd.Response, _ *httpd.Request, body []byte) act.Action {
		_, _ = w.WriteString("fine")
		return nil
	})
	for name, row := range map[string]struct {
		status int
		says   string
		waits  time.Duration
		asked  int // handlers
	}{
		"a bad request":              {400, "GET /xyzzy HTTP/1.1\nHost: xyzzy\nxyzzy\n\n", 0, 0},
		"a bad chunk":                {400, "POST /xyzzy HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\nxyzzy\n", 0, 1},
		"a slow head":                {408, "GET /xyzzy HTTP/1.1\nHost: xyzzy\n", 10 * time.Second, 0},
		"a slow body":                {408, "POST /xyzzy HTTP/1.1\nHost: a\nContent-Length: 8\n\nxyzzy", 6 * time.Second, 1},
		"a body that is announced":   {413, "POST /xyzzy HTTP/1.1\nHost: a\nContent-Length: 11\n\nxyzzyxyzzy!", 0, 1},
		"a long target":              {414, "GET /" + strings.Repeat("xyzzy", 4000), 0, 0},
		"another expectation":        {417, "POST /xyzzy HTTP/1.1\nHost: a\nExpect: xyzzy\nContent-Length: 5\n\nxyzzy", 0, 0},
		"a large head":               {431, get + strings.Repeat("X: xyzzy\n", 7000), 0, 0},
		"a proxy's method":           {501, "CONNECT xyzzy:80 HTTP/1.1\nHost: xyzzy:80\n\n", 0, 0},
		"another version":            {505, "GET /xyzzy HTTP/3.0\nHost: a\n\n", 0, 0},
		"a HEAD that is refused":     {400, "HEAD /xyzzy HTTP/1.1\nHost: xyzzy/\n\n", 0, 0},
		"a body to HEAD that is bad": {400, "HEAD /xyzzy HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\nxyzzy\n", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lot := range []int{0, 1, 100_000} { // of what is behind it, and never read
				d := newDriver(t)
				handled := 0
				c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
					handled++
					return reading(w, r)
				}}, listener.Limits{})
				c.send(raw(get + "\n" + row.says))
				if row.waits > 0 {
					d.pass(row.waits)
				}
				c.send(raw(strings.Repeat(behind, lot/len(behind)+min(lot, 1))))
				head := strings.HasPrefix(row.says, "HEAD")
				all := c.check(t, asked{}, asked{head: head})
				require.Equal(t, "200 "+strconv.Itoa(row.status)+"!", statuses(all))
				a := all[1]
				require.Equal(t, "text/plain; charset=utf-8", a.get("Content-Type"))
				want := strconv.Itoa(row.status) + " " + syntax.StatusText(row.status) + "\n"
				require.Equal(t, strconv.Itoa(len(want)), a.get("Content-Length"))
				require.Equal(t, head, a.body == "")
				require.NotContains(t, string(c.out), marker)
				require.Equal(t, 1+row.asked, handled, "no handler is called for what comes behind it")
				require.Equal(t, act.Done, c.verdict, "a client's mistake is no failure of ours")
				require.Zero(t, d.logs.Len())
			}
		})
	}
}

// A client of another protocol waits for an answer to what it has sent: it hears at once that this is no HTTP.
func TestAControlCharacterIsRefusedAtOnce(t *testing.T) {
	for _, says := range []string{"\x16\x03\x01", "\x00", "GET /\x00", get + "X: \x00"} {
		c := newDriver(t).dial(&httpd.Server{Handler: (&recorder{}).serve}, listener.Limits{}).send(raw(says))
		require.Equal(t, "400!", statuses(c.check(t)), "%q", says)
	}
}
