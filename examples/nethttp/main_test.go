package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

func TestMain(m *testing.M) { exectest.Main(m) }

// visited is a site that runs, and a client of it.
type visited struct {
	*exectest.Program
	*testing.T
	url    string
	client *http.Client
}

// visit starts the program on a free port, with a client that trusts whatever certificate it shows. No request may fail.
func visit(t *testing.T, flags ...string) *visited {
	t.Helper()
	command := exectest.Build{Dir: "."}.Command(t, append([]string{"-addr", "127.0.0.1:0"}, flags...)...)
	p := exectest.Start(t, command)
	t.Cleanup(func() { require.NotContains(t, p.Said(), "failed") })
	p.Listens(t, p.Said)
	scheme := "http://"
	if strings.Contains(strings.Join(flags, " "), "-tls") {
		scheme = "https://"
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &visited{p, t, scheme + p.Addr, &http.Client{Transport: transport}}
}

// ask sends a request, whose answer has to begin in time. The body is that of a stream, maybe: the test closes it.
func (v *visited) ask(method, path string, body io.Reader) *http.Response {
	v.Helper()
	ctx, cancel := context.WithCancel(v.Context())
	v.Cleanup(cancel)
	late := time.AfterFunc(exectest.Patience, cancel)
	defer late.Stop()
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, body)
	require.NoError(v, err)
	a, err := v.client.Do(r)
	require.NoError(v, err)
	v.Cleanup(func() { _ = a.Body.Close() })
	return a
}

// get returns what a page says.
func (v *visited) get(path string) string {
	v.Helper()
	a := v.ask("GET", path, nil)
	require.Equal(v, 200, a.StatusCode)
	return whole(v.T, a)
}

func whole(t *testing.T, a *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	return string(body)
}

// known returns what /me knows.
func known(t *testing.T, text string) (m map[string]string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &m), text)
	return m
}

// streams returns how many streams of events are open.
func (v *visited) streams() int {
	v.Helper()
	var all struct{ Streams *int }
	require.NoError(v, json.Unmarshal([]byte(v.get("/debug/vars")), &all))
	return *all.Streams
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

// next returns the next event of a stream.
func next(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	var event strings.Builder
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err, event.String())
		if line == "\n" {
			return event.String()
		}
		event.WriteString(line)
	}
}

func curl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "curl"), append([]string{"-ksS", "--noproxy", "*", "--max-time", "60"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestSite(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program, and uses curl")
	v := visit(t, "-timeout", "1s", "-tls-self")
	url := v.url
	for _, name := range []string{"index.html", "style.css", "site.js", "favicon.svg"} {
		content, err := os.ReadFile("site/public/" + name)
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
	me = known(t, curl(t, "-0", "-H", "X-Forwarded-For: 192.0.2.9, 192.0.2.7", url+"/me"))
	require.Equal(t, "192.0.2.7", me["client"], "by the trusted proxy; what the client says itself counts nothing")
	require.Equal(t, "HTTP/1.0", me["protocol"])
	require.NotEmpty(t, me["request"])

	require.Equal(t, "That took 1ms.\n", curl(t, url+"/wait/1ms"))
	require.Regexp(t, `^HTTP/1.1 504 `, curl(t, "-i", url+"/wait/1h"))
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
	require.Zero(t, v.streams())
	v.Stop(t)
	require.Regexp(t, `"GET https?://\S+/wait/1h HTTP/1.1" from 127\.0\.0\.1 - 504 0B in `, v.Out())
}

// One site stands before another one.
func TestProxy(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program")
	behind := visit(t)
	v := visit(t, "-upstream", behind.url)
	me := known(t, v.get("/api/me"))
	require.Equal(t, "127.0.0.1", me["client"])
	require.True(t, bytes.Equal(lines(5<<20), []byte(v.get("/api/bytes/5242880"))))

	content := lines(5 << 20)
	require.Equal(t, sum(content), whole(t, v.ask("POST", "/api/sha256", bytes.NewReader(content))))
	require.Equal(t, sum(content), whole(t, v.ask("POST", "/api/sha256", io.MultiReader(bytes.NewReader(content)))), "in chunks")
	require.Equal(t, 404, v.ask("GET", "/api/nowhere", nil).StatusCode)

	a := v.ask("GET", "/api/events", nil)
	in := bufio.NewReader(a.Body)
	for range 2 {
		require.Regexp(t, `^data: `, next(t, in), "not kept back")
	}
	require.Equal(t, 1, behind.streams())
	require.NoError(t, a.Body.Close())
	exectest.Eventually(t, exectest.Patience, "the end of the client to get through", func() bool { return behind.streams() == 0 })

	behind.Stop(t)
	require.Equal(t, 502, v.ask("GET", "/api/me", nil).StatusCode)
	v.Stop(t)
}

type answer struct {
	*http.Response
	err error
}

// What has begun goes on after a signal to its end, and streams without an end get one.
func TestDrain(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program")
	const size = 32 << 20 // more than all buffers on the way
	content := lines(size)
	v := visit(t, "-drain", "20m")
	down := v.ask("GET", fmt.Sprintf("/bytes/%d", size), nil)
	got := make([]byte, 100)
	_, err := io.ReadFull(down.Body, got)
	require.NoError(t, err)

	events := bufio.NewReader(v.ask("GET", "/events", nil).Body)
	require.Regexp(t, `^data: `, next(t, events))

	body, up := io.Pipe()
	digest := make(chan answer, 1)
	go func() {
		a, err := v.client.Post(v.url+"/sha256", "text/plain", body)
		digest <- answer{a, err}
	}()
	_, err = up.Write(content[:size/2]) // most of it is read by the handler
	require.NoError(t, err)

	v.Signal(t, syscall.SIGTERM)
	event := next(t, events)
	for strings.HasPrefix(event, "data: 20") {
		event = next(t, events)
	}
	require.Equal(t, "event: end\ndata: The server ends.\n", event)
	_, err = events.ReadByte()
	require.Equal(t, io.EOF, err)

	_, err = up.Write(content[size/2:])
	require.NoError(t, err)
	require.NoError(t, up.Close())
	digested := <-digest
	require.NoError(t, digested.err)
	require.Equal(t, sum(content), whole(t, digested.Response))

	rest, err := io.ReadAll(down.Body)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, append(got, rest...)))
	require.Zero(t, v.Exit(t))
	require.Contains(t, v.Said(), "ended in order")
}

func TestWrongFlags(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program")
	for _, upstream := range []string{"127.0.0.1:9090", "ftp://127.0.0.1", "http://", "nowhere", ""} {
		p := exectest.Start(t, exectest.Build{Dir: "."}.Command(t, "-upstream", upstream))
		require.Equal(t, 2, p.Exit(t))
		require.Regexp(t, `^nethttp: invalid value ".*" for flag -upstream: .+\n$`, p.Said())
	}
}
