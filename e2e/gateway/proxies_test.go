package gateway

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// An origin is a server that answers as a script says, and keeps what it was asked.
type origin struct {
	at  string
	end func()
	// respond answers a request, and reports whether the connection goes on. It is exchange, unless a test sets another.
	respond func(net.Conn, *bufio.Reader) (more bool)

	mu     sync.Mutex
	answer string // see row
	seen   []*message
	busy   int // requests that have begun and are not answered
	open   map[net.Conn]bool
	ended  bool
	heard  chan struct{} // gets a value when a client has the head of an answer that waits for that
}

// raw has the bytes of a text in which an end of line is CRLF; ␊ is a bare LF, and ␍ a bare CR.
func raw(text string) string {
	return strings.NewReplacer("\n", "\r\n", "␊", "\n", "␍", "\r").Replace(text)
}

func newOrigin(t *testing.T) *origin {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &origin{at: l.Addr().String(), open: map[net.Conn]bool{}, heard: make(chan struct{}, 1)}
	o.respond = o.exchange
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.note(func() {
				if o.open[c] = true; o.ended {
					_ = c.Close()
				}
			})
			all.Go(func() { o.serve(c) })
		}
	})
	o.end = sync.OnceFunc(func() {
		_ = l.Close()
		o.note(func() {
			o.ended = true
			for c := range o.open {
				_ = c.Close()
			}
		})
		all.Wait()
	})
	t.Cleanup(o.end)
	return o
}

func (o *origin) note(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// begin has the next requests answered so, and forgets earlier ones.
func (o *origin) begin(answer string) { o.note(func() { o.answer, o.seen = answer, nil }) }

// finish waits until every request is answered or cut off, and returns them.
func (o *origin) finish(t *testing.T) (seen []*message) {
	exectest.Eventually(t, patience, "the ends of all requests", func() (idle bool) {
		o.note(func() { idle, seen = o.busy == 0, o.seen })
		return idle
	})
	return seen
}

// serve answers the requests of a connection.
func (o *origin) serve(c net.Conn) {
	defer c.Close()
	defer o.note(func() { delete(o.open, c) })
	in := bufio.NewReader(c)
	for more := true; more; {
		if _, err := in.Peek(1); err != nil {
			return
		}
		o.note(func() { o.busy++ })
		more = o.respond(c, in)
		o.note(func() { o.busy-- })
	}
}

// exchange reads a request and answers it.
func (o *origin) exchange(c net.Conn, in *bufio.Reader) (more bool) {
	m, err := readRequest(in)
	if err != nil {
		m = &message{line: err.Error(), trailer: &http.Header{}} // what is no request is noted as well
	}
	answer := probed
	if !strings.HasPrefix(m.line, "GET /probe ") {
		o.note(func() {
			o.seen = append(o.seen, m)
			answer = cmp.Or(o.answer, ok+length)
		})
	}
	answer, early := strings.CutPrefix(answer, "^")
	answer, last := strings.CutSuffix(answer, "!")
	if err == nil && !early {
		if m.header.Get("Expect") == "100-continue" {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		m.read()
	}
	if err != nil || m.cut {
		return false
	}
	for i, part := range strings.Split(raw(answer), "…") {
		if i > 0 {
			<-o.heard
		}
		_, _ = io.WriteString(c, part)
	}
	if early {
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, in) // a reset would overtake the answer
	}
	return !last
}

const probed = "HTTP/1.1 200 OK\nX-Probed: yes\nContent-Length: 0\n\n"

// A proxy is one of the three.
type proxy struct {
	name, network, at string
	*origin
}

func (p *proxy) dial(t *testing.T) *caller {
	k, err := dial(p.network, p.at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// ours passes everything on to an origin.
func ours(t *testing.T, to *origin) *proxy {
	return &proxy{"gateway", "tcp", program(t, "", to.at).Addr, to}
}

// program runs examples/gateway with one group, of which the settings are those of the file. It speaks HTTP/2 with the back ends
// whose address follows "h2 ".
func program(t *testing.T, settings string, backs ...string) *exectest.Program {
	text := "[[routes]]\ngroup = \"all\"\n[[groups]]\nname = \"all\"\n" + settings + "\n"
	for _, at := range backs {
		at, http2 := strings.CutPrefix(at, "h2 ")
		text += fmt.Sprintf("[[groups.backends]]\naddress = %q\nhttp2 = %v\ntimeouts = { head = \"3s\" }\n", at, http2)
	}
	path := filepath.Join(t.TempDir(), "gateway.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	build := exectest.Build{Dir: "../../examples/gateway", Race: race.Enabled}
	p := exectest.Start(t, build.Command(t, "-addr", "127.0.0.1:0", "-config", path,
		"-inspect", "127.0.0.1:0", "-inspect-token", token))
	p.Listens(t, p.Said)
	return p
}

// haproxy passes everything on to an origin.
func haproxy(t *testing.T, to *origin) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, l.Close())
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	config := "defaults\n  mode http\n  timeout connect 2m\n  timeout client 2m\n  timeout server 2m\n" +
		"listen web\n  bind fd@3\n  http-reuse always\n  server s " + to.at + "\n"
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	cmd := exec.Command(tier.Tool(t, "haproxy"), "-db", "-f", path)
	cmd.ExtraFiles = []*os.File{f}
	exectest.Start(t, cmd)
	return &proxy{"HAProxy", "tcp", l.Addr().String(), to}
}

// nginx runs nginx with what is inside of an http block, and of a server block. It listens at a Unix socket.
func nginx(t *testing.T, http, server string) (p *exectest.Program, at string) {
	dir, err := os.MkdirTemp("", "e2e") // of t.TempDir the name is too long for a Unix socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	config := "daemon off; master_process off; pid pid; events {}\nhttp { access_log off; client_body_temp_path a;\n" +
		"proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;\n" + http +
		"\nserver { listen unix:" + dir + "/web;\n" + server + "\n} }\n"
	path := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	p = exectest.Start(t, exec.Command(tier.Tool(t, "nginx"), "-p", dir, "-e", "stderr", "-c", path))
	exectest.Eventually(t, patience, "nginx to listen", func() bool {
		c, err := net.Dial("unix", dir+"/web")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return p, dir + "/web"
}

// engineX passes everything on to an origin.
func engineX(t *testing.T, to *origin) *proxy {
	_, at := nginx(t, "upstream o { server "+to.at+"; keepalive 8; }",
		"location / { proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection \"\";\n"+
			"proxy_set_header Host $http_host; proxy_redirect off; proxy_buffering off; proxy_request_buffering off; }")
	return &proxy{"nginx", "unix", at, to}
}
