package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// A viewer asks a program for its pages of package inspect.
type viewer struct {
	at string // http://127.0.0.1:6060
	http.Client
}

const secretToken = "nobody-knows"

// inspectable are the flags of a program that has a viewer.
var inspectable = []string{"-inspect", "127.0.0.1:0", "-inspect-token", secretToken}

// viewerOf finds the pages in the log of a program, which listens.
func viewerOf(t *testing.T, p *exectest.Program) *viewer {
	t.Helper()
	logged := regexp.MustCompile(`inspect at (http://[^/]+)/\n`).FindStringSubmatch(p.Said())
	require.NotNil(t, logged, p.Said())
	v := &viewer{logged[1], http.Client{Transport: &http.Transport{}, Timeout: patience}}
	t.Cleanup(v.CloseIdleConnections)
	return v
}

// ask asks for a page with the token. change may change the request.
func (v *viewer) ask(path string, change func(*http.Request)) (status int, kind, body string, err error) {
	r, err := http.NewRequest("GET", v.at+path, nil)
	if err != nil {
		return 0, "", "", err
	}
	r.Header.Set("Authorization", "Bearer "+secretToken)
	if change != nil {
		change(r)
	}
	a, err := v.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, a.Header.Get("Content-Type"), string(text), err
}

// get wants an answer.
func (v *viewer) get(t *testing.T, path string) (kind, body string) {
	t.Helper()
	status, kind, body, err := v.ask(path, nil)
	require.NoError(t, err)
	require.Equal(t, 200, status, body)
	return kind, body
}

// connections returns how many connections /json says that are open and were accepted at an address, on all schedulers.
func (v *viewer) connections(t *testing.T, addr string) (open, accepted int) {
	t.Helper()
	_, body := v.get(t, "/json")
	var report struct {
		Schedulers []struct {
			Services []struct {
				Name           string
				Open, Accepted int
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	found := false
	for _, s := range report.Schedulers {
		for _, service := range s.Services {
			if strings.HasSuffix(service.Name, " "+addr) {
				found, open, accepted = true, service.Open, accepted+service.Accepted // each counts the connections of all schedulers
			}
		}
	}
	require.True(t, found, "no service at %s in %s", addr, body)
	return open, accepted
}

// Every server among the examples shows what it is doing, and ends as if nobody had looked.
func TestEveryExampleServerIsInspected(t *testing.T) {
	outside(t)
	const main = `"github.com/daimon-go/daimon/program"`
	further := map[string][]string{"chat": {"-web", "127.0.0.1:0"}, "mqtt": {"-web", "127.0.0.1:0"}, "proxy": {"-to", serve(t, "echo").Addr},
		"jobs": {"-db", filepath.Join(t.TempDir(), "jobs.db")}, "tutorial": {"-health", "127.0.0.1:0"}}
	routes := filepath.Join(t.TempDir(), "gateway.toml")
	table := "routes = [{ group = 'site' }]\ngroups = [{ name = 'site', backends = [{ address = '" + serve(t, "httpd").Addr + "' }] }]\n"
	require.NoError(t, os.WriteFile(routes, []byte(table), 0o600))
	further["gateway"] = []string{"-config", routes}
	sources, err := filepath.Glob("../examples/*/main.go")
	require.NoError(t, err)
	var servers []string
	for _, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		if name := filepath.Base(filepath.Dir(source)); strings.Contains(string(text), main) {
			servers = append(servers, name)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inspected(t, name, further[name])
			})
		}
	}
	require.Equal(t, []string{
		"chat", "dns", "echo", "echo-coro", "gateway", "graceful", "hello", "httpd", "jobs", "mqtt", "nethttp", "proxy", "rpc", "tutorial", "websocket-echo",
	}, servers)
}

func inspected(t *testing.T, name string, flags []string) {
	p := serve(t, name, append(flags, inspectable...)...)
	open := p.Descriptors(t)
	v := viewerOf(t, p)

	c := dial(t, p.Addr)
	say := "GET / HTTP/1.1\r\nHost: x\r\n\r\n" // a connection that has said nothing is closed after a while
	switch name {
	case "mqtt":
		say = "\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00"
	case "dns":
		say = "\x00\x21\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03web\x07example\x03com\x00\x00\x01\x00\x01"
	}
	_, err := io.WriteString(c, say)
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)
	exectest.Eventually(t, patience, "the connection in the figures", func() bool {
		open, accepted := v.connections(t, p.Addr)
		return open == 1 && accepted == 1
	})
	for _, page := range []struct{ path, kind, has string }{
		{"/", "text/html; charset=utf-8", "<title>"},
		{"/text", "text/plain; charset=utf-8", " " + p.Addr + " "},
		{"/tasks", "text/plain; charset=utf-8", c.LocalAddr().String()},
		{"/tasks.json", "application/json", c.LocalAddr().String()},
		{"/json", "application/json", " " + p.Addr + `"`},
		{"/metrics", "text/plain; version=0.0.4; charset=utf-8", `daimon_service_accepted_total{service="tcp ` + p.Addr + `"} 1` + "\n"},
		{"/metrics", "text/plain; version=0.0.4; charset=utf-8", `daimon_service_connections{service="tcp ` + p.Addr + `"} 1` + "\n"},
		{"/last", "text/plain; charset=utf-8", "tcp " + p.Addr},
	} {
		exectest.Eventually(t, patience, page.has+" in "+page.path, func() bool { // a scheduler may be late
			kind, body := v.get(t, page.path)
			require.Equal(t, page.kind, kind, page.path)
			return strings.Contains(body, page.has)
		})
	}
	status, _, body, err := v.ask("/json", func(r *http.Request) { r.Header.Del("Authorization") })
	require.NoError(t, err)
	require.Equal(t, 401, status)
	require.NotContains(t, body, p.Addr)

	require.NoError(t, c.Close())
	exectest.Eventually(t, patience, "the end of the connection in the figures", func() bool {
		open, accepted := v.connections(t, p.Addr)
		return open == 0 && accepted == 1
	})
	v.CloseIdleConnections()
	exectest.Eventually(t, patience, "the descriptors back", func() bool { return p.Descriptors(t) <= open })

	p.Signal(t, syscall.SIGTERM)
	require.Zero(t, p.Exit(t))
	require.Contains(t, p.Said(), "ended in order")
	for _, addr := range []string{p.Addr, strings.TrimPrefix(v.at, "http://")} {
		_, err := net.Dial("tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED, addr)
	}
}

// everyPage has all pages that end.
var everyPage = []string{"/", "/text", "/tasks", "/tasks.json", "/json", "/metrics", "/last", "/debug/pprof/goroutine?debug=2"}

// Nothing that a client has sent is on a page, in a file of last events, or in the log: of connections that rest in a
// head, in a body and in an answer, and after requests of all kinds.
func TestPagesShowNothingThatClientsHaveSent(t *testing.T) {
	outside(t)
	t.Parallel()
	const secret = "nobodys-business"
	root, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, secret), make([]byte, 64<<20), 0o600)) // more than the system takes
	p := serve(t, "httpd", append([]string{"-root", root, "-inspect-dir", dir}, inspectable...)...)
	v := viewerOf(t, p)
	head := " HTTP/1.1\r\nHost: " + secret + ".example\r\nCookie: id=" + secret + "\r\nAuthorization: Bearer " + secret + "\r\n"
	for request, answer := range map[string]string{
		"GET /" + secret + "?q=" + secret + head + "Connection: close\r\n\r\n": "HTTP/1.1 404 ",
		"DELETE /files/" + secret + head + "Connection: close\r\n\r\n":         "HTTP/1.1 405 ",
		secret + " " + secret + head + "\r\n":                                  "HTTP/1.1 400 ",
	} {
		c := dial(t, p.Addr)
		_, err := io.WriteString(c, request)
		require.NoError(t, err)
		said, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(said), answer), "%s\n%s", request, said)
	}
	var open []net.Conn
	for _, request := range []string{
		"GET /" + secret + head,
		"POST /echo?q=" + secret + head + "Content-Length: 1000\r\n\r\n" + secret,
		"GET /files/" + secret + "?q=" + secret + head + "\r\n",
	} {
		c := dial(t, p.Addr)
		_, err := io.WriteString(c, request)
		require.NoError(t, err)
		open = append(open, c)
	}
	exectest.Eventually(t, patience, "a handler of a file and one of an echo", func() bool {
		_, body := v.get(t, "/tasks")
		return strings.Contains(body, "POST /echo") && strings.Contains(body, "GET /files/{path...}")
	})
	p.Signal(t, syscall.SIGUSR1)
	var files []string
	exectest.Eventually(t, patience, "a file of last events", func() bool {
		files, _ = filepath.Glob(filepath.Join(dir, "*-signal.txt")) // the pattern is good
		return len(files) == 1 && strings.Contains(p.Said(), files[0])
	})
	for _, page := range everyPage {
		_, body := v.get(t, page)
		require.NotContains(t, body, secret, page)
	}
	file, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Contains(t, string(file), p.Addr)
	require.NotContains(t, string(file), secret)
	require.NotContains(t, p.Said(), secret, "the log")
	for _, c := range open {
		require.NoError(t, c.Close())
	}
	p.Stop(t)
}

// What was broken: processes, which were rooms, had names that clients had chosen.
func TestPagesShowNoNameThatAClientHasChosen(t *testing.T) {
	outside(t)
	t.Parallel()
	const secret = "nobodys-business"
	chat := serve(t, "chat", append([]string{"-web", "127.0.0.1:0"}, inspectable...)...)
	servertest.Send(t, dial(t, chat.Addr), secret+"\n/join "+secret+"\n"+secret+"\n")
	v := viewerOf(t, chat)
	exectest.Eventually(t, patience, "a member", func() bool {
		_, tasks := v.get(t, "/tasks")
		return strings.Contains(tasks, "*main.member")
	})
	for _, page := range everyPage {
		_, body := v.get(t, page)
		require.NotContains(t, body, secret, page)
	}
	require.NotContains(t, chat.Said(), secret, "the log")
}
