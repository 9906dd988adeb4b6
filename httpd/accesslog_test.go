package httpd_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/accesslog"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

// keepLog has a server keep an access log. lines ends the scheduler and returns them.
func keepLog(d *driver, f accesslog.Format, web *httpd.Server) (lines func() []string) {
	log := &accesslog.Log{Path: filepath.Join(d.t.TempDir(), "access.log"), Format: f}
	require.NoError(d.t, log.Setup(d.s))
	web.OnResponse = log.OnResponse()
	d.s.Internals().KeepRunning(1) // as a service does: otherwise it has no pass when all connections have ended
	return func() []string {
		_ = d.s.Close()
		text, err := os.ReadFile(log.Path)
		require.NoError(d.t, err)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
}

func TestFormatsOfTheAccessLog(t *testing.T) {
	for f, want := range map[accesslog.Format][]string{
		accesslog.Common: {
			`192.0.2.1 - - [21/Nov/2026:12:00:01 +0000] "GET /a?b HTTP/1.1" 200 13`,
			`192.0.2.1 - - [21/Nov/2026:12:00:03 +0000] "HEAD http://b/ HTTP/1.0" 200 0`,
			`192.0.2.1 - - [21/Nov/2026:12:00:03 +0000] "-" 400 16`},
		accesslog.Combined: {
			`192.0.2.1 - - [21/Nov/2026:12:00:01 +0000] "GET /a?b HTTP/1.1" 200 13 "http://a/" "c\x22url"`,
			`192.0.2.1 - - [21/Nov/2026:12:00:03 +0000] "HEAD http://b/ HTTP/1.0" 200 0 "-" "-"`,
			`192.0.2.1 - - [21/Nov/2026:12:00:03 +0000] "-" 400 16 "-" "-"`},
		accesslog.JSON: {
			`{"time":"2026-11-21T12:00:01.250Z","client":"192.0.2.1:4711","tls":false,"method":"GET","target":"/a?b",` +
				`"protocol":"HTTP/1.1","host":"a","status":200,"bytes":13,"seconds":1.250000,"referer":"http://a/","user_agent":"c\u0022url"}`,
			`{"time":"2026-11-21T12:00:03.250Z","client":"192.0.2.1:4711","tls":false,"method":"HEAD","target":"http://b/",` +
				`"protocol":"HTTP/1.0","host":"b","status":200,"bytes":0,"seconds":1.250000,"referer":"","user_agent":""}`,
			`{"time":"2026-11-21T12:00:03.250Z","client":"192.0.2.1:4711","tls":false,"method":"","target":"",` +
				`"protocol":"HTTP/1.0","host":"","status":400,"bytes":16,"seconds":0.000000,"referer":"","user_agent":""}`},
	} {
		t.Run(fmt.Sprint("format ", f), func(t *testing.T) {
			d := newDriver(t)
			web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
				return act.Seq(&listener.Sleep{For: 1250 * time.Millisecond}, act.Func(func(*act.Task) act.Directive {
					hello(w, r)
					return act.Done
				}))
			}}
			lines := keepLog(d, f, web)
			c := d.dial(web, listener.Limits{}).send("GET /a?b HTTP/1.1\r\nHost: a\r\n",
				"Referer: http://a/\r\nUser-Agent: c\"url\r\n\r\n")
			d.pass(1250 * time.Millisecond)
			d.pass(750 * time.Millisecond)
			c.send("HEAD http://b/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
			d.pass(1250 * time.Millisecond)
			c.send("nonsense\r\n\r\n")
			require.Equal(t, want, lines())
		})
	}
}

// Each request has one line, however it ends.
func TestTheAccessLogHasEachEnd(t *testing.T) {
	const ask = "GET / HTTP/1.1\r\nHost: a\r\n"
	waits := func(*httpd.Response, *httpd.Request) act.Action { return &listener.Sleep{For: time.Hour} }
	for name, row := range map[string]struct {
		handler httpd.Handler
		request string
		then    func(c *client)
		want    string
	}{
		"answered":              {hello, ask + "\r\n", nil, `"GET / HTTP/1.1" 200 13`},
		"chunks":                {does(t, "flush, write 5"), ask + "\r\n", nil, `"GET / HTTP/1.1" 200 5`},
		"refused behind a head": {hello, ask + "Content-Length: x\r\n\r\n", nil, `"GET / HTTP/1.1" 400 16`},
		"refused in a head":     {hello, ask + "bad\r\n", nil, `"GET / HTTP/1.1" 400 16`},
		"refused in the line":   {hello, "GET\r\n", nil, `"-" 400 16`},
		"too slow":              {hello, ask, func(c *client) { c.d.pass(time.Minute) }, `"GET / HTTP/1.1" 408 20`},
		"no head":               {hello, "GE", func(c *client) { c.endInput() }, ``},
		"a failure":             {does(t, "fail"), ask + "\r\n", nil, `"GET / HTTP/1.1" 500 26`},
		"a panic":               {does(t, "panic"), ask + "\r\n", nil, `"GET / HTTP/1.1" 000 0`},
		"a reset before the answer": {waits, ask + "\r\n", func(c *client) {
			c.finish(syscall.ECONNRESET)
			c.d.settle()
		}, `"GET / HTTP/1.1" 000 0`},
		"switched":      {does(t, "switch"), ask + "Connection: upgrade\r\nUpgrade: line-echo\r\n\r\n", nil, `"GET / HTTP/1.1" 101 0`},
		"hijacked":      {hijacking, ask + "\r\n", nil, `"GET / HTTP/1.1" 000 0`},
		"dropped":       {waits, ask + "\r\n", func(c *client) { _ = c.d.s.Close() }, `"GET / HTTP/1.1" 000 0`},
		"a slow reader": {does(t, "whole 1048576"), ask + "\r\n", func(c *client) { c.d.pass(2 * time.Minute) }, `"GET / HTTP/1.1" 200 165455`}, // 64 KiB of them are queued
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			web := &httpd.Server{Handler: row.handler}
			written := keepLog(d, accesslog.Common, web)
			c := d.dial(web, listener.Limits{High: 64 << 10, Low: 32 << 10})
			if name == "a slow reader" {
				c.room = 100_000
			}
			if c.send(row.request); row.then != nil {
				row.then(c)
			}
			var got []string
			for _, line := range written() {
				_, line, _ = strings.Cut(line, "] ")
				got = append(got, line)
			}
			require.Equal(t, row.want, strings.Join(got, ", "))
		})
	}
}

// addressed is a Replay that has a client's address.
type addressed struct {
	servertest.Replay
	asked int
}

func (a *addressed) PeerAddr() net.Addr {
	a.asked++
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
}

func TestALineOfTheAccessLogAllocatesNothing(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	d := newDriver(t)
	m := &addressed{Replay: servertest.Replay{Says: browser(t)}}
	web := &httpd.Server{Handler: hello}
	lines := keepLog(d, accesslog.JSON, web)
	d.s.Spawn(web.Serve(listener.NewConn(d.s, m, listener.Limits{})))
	require.Zero(t, testing.AllocsPerRun(2000, func() { d.once(&m.Replay) }))
	require.Len(t, lines(), 1+2000) // the first one is a warm-up
	require.Equal(t, 1, m.asked, "the address of a client is asked for once")
}
