package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

func TestMain(m *testing.M) { exectest.Main(m) }

var binary = exectest.Build{Dir: "."}

// known returns what /me knows.
func known(t *testing.T, text string) (m map[string]string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &m), text)
	return m
}

// lines returns the n bytes that /bytes/n has, made in another way.
func lines(n int) []byte {
	b := make([]byte, 0, n+20)
	for i := int64(0); len(b) < n; i++ { // package fmt would take a minute of a busy machine, with the race detector
		b = append(strconv.AppendInt(b, i, 10), '\n')
	}
	return b[:n]
}

func sum(content []byte) string { return fmt.Sprintf("%x\n", sha256.Sum256(content)) }

func curl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "curl"), append([]string{"-ksS", "--http1.1", "--noproxy", "*", "--max-time", "120"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestSite(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program, and uses curl")
	p := exectest.Start(t, binary.Command(t, "-addr", "127.0.0.1:0", "-timeout", "2m", "-tls-self"))
	p.Listens(t, p.Said)
	url := "https://" + p.Addr
	for _, name := range []string{"index.html", "style.css", "site.js", "favicon.svg"} {
		content, err := os.ReadFile("public/" + name)
		require.NoError(t, err)
		require.NotContains(t, strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", ""), "://", "from elsewhere")
		path := "/" + strings.TrimSuffix(name, "index.html")
		require.Equal(t, string(content), curl(t, url+path))
		require.Equal(t, string(content), curl(t, "--compressed", url+path))
		require.Equal(t, string(content[10:20]), curl(t, "-r", "10-19", url+path))
		require.Regexp(t, fmt.Sprintf(`(?s)^HTTP/1.1 200 .*\r\nContent-Length: %d\r\n`, len(content)), curl(t, "-I", url+path))
	}
	require.Contains(t, curl(t, "-i", "-H", "Accept-Encoding: gzip", "-o", "/dev/null", "-D", "-", url+"/"), "Content-Encoding: gzip\r\n")

	me := known(t, curl(t, "-H", "X-Request-Id: mine", url+"/me"))
	require.Equal(t, map[string]string{"client": "127.0.0.1", "request": "mine", "protocol": "HTTP/1.1", "tls": "http/1.1"}, me)
	me = known(t, curl(t, "--http2", url+"/me"))
	require.Equal(t, "HTTP/2.0 by h2", me["protocol"]+" by "+me["tls"])
	me = known(t, curl(t, "-0", "-H", "X-Forwarded-For: 192.0.2.9, 192.0.2.7", url+"/me"))
	require.Equal(t, "192.0.2.7", me["client"], "by the trusted proxy; what the client says itself counts nothing")
	require.Equal(t, "HTTP/1.0", me["protocol"])
	require.NotEmpty(t, me["request"])

	require.Equal(t, "That took 1ms.\n", curl(t, url+"/wait/1ms"))
	require.Regexp(t, `^HTTP/1.1 400 `, curl(t, "-i", url+"/wait/long"))
	require.Regexp(t, `^HTTP/1.1 404 `, curl(t, "-i", url+"/nowhere"))
	require.Regexp(t, `^HTTP/1.1 404 `, curl(t, "-i", url+"/api/"), "there is no -upstream")
	require.Regexp(t, `^HTTP/1.1 405 `, curl(t, "-i", "-d", "x", url+"/me"))

	content := lines(3 << 20)
	require.True(t, string(content) == curl(t, url+"/bytes/3145728"))
	require.True(t, string(content) == curl(t, "-0", url+"/bytes/3145728"))
	require.Regexp(t, `^HTTP/1.1 400 `, curl(t, "-i", url+"/bytes/-1"))

	file := filepath.Join(t.TempDir(), "content")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	require.Equal(t, sum(content), curl(t, "--data-binary", "@"+file, url+"/sha256"), "with its length, after 100 (Continue)")
	require.Equal(t, sum(content), curl(t, "-H", "Transfer-Encoding: chunked", "--data-binary", "@"+file, url+"/sha256"))
	require.Equal(t, sum(nil), curl(t, "-d", "", url+"/sha256"))
	require.Regexp(t, `^HTTP/1.1 413 `, curl(t, "-i", "-H", "Expect: 100-continue", "-H", "Content-Length: 1073741825",
		"-X", "POST", "--data-binary", "@"+file, url+"/sha256"), "before any of it is sent")

	require.Contains(t, curl(t, url+"/debug/pprof/goroutine?debug=1"), "goroutine profile: total ")
	require.Contains(t, curl(t, "-L", url+"/debug/pprof"), "full goroutine stack dump")
	p.Stop(t)
	require.NotContains(t, p.Said(), "failed")

	p = exectest.Start(t, binary.Command(t, "-addr", "127.0.0.1:0", "-timeout", "1s"))
	p.Listens(t, p.Said)
	require.Regexp(t, `^HTTP/1.1 504 `, curl(t, "-i", "http://"+p.Addr+"/wait/1h"))
	p.Stop(t)
	require.Regexp(t, `"GET https?://\S+/wait/1h HTTP/1.1" from 127\.0\.0\.1 - 504 0B in `, p.Out())
}

// One site stands before another one. What has begun when the signal comes goes on, and a stream of events without an end gets one.
func TestUpstreamAndEvents(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program, and uses curl")
	behind := exectest.Start(t, binary.Command(t, "-addr", "127.0.0.1:0"))
	behind.Listens(t, behind.Said)
	front := exectest.Start(t, binary.Command(t, "-addr", "127.0.0.1:0", "-upstream", "http://"+behind.Addr))
	front.Listens(t, front.Said)
	require.Equal(t, "127.0.0.1", known(t, curl(t, "http://"+front.Addr+"/api/me"))["client"])
	events := exectest.Start(t, exec.Command("curl", "-sSN", "--noproxy", "*", "http://"+front.Addr+"/api/events"))
	exectest.Eventually(t, exectest.Patience, "events", func() bool { return strings.Count(events.Out(), "data: 20") > 1 })
	behind.Signal(t, syscall.SIGTERM)
	require.Zero(t, events.Exit(t))
	require.Contains(t, events.Out(), "event: end\ndata: The server ends.\n")
	require.Zero(t, behind.Exit(t))
	require.Regexp(t, `^HTTP/1.1 502 `, curl(t, "-i", "http://"+front.Addr+"/api/me"))
	front.Stop(t)
}
