package gateway

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/smuggling"
	"github.com/daimon-go/daimon/service"
)

// A server is behind the gateway. It answers each request with its method and target, and notes both.
type server struct {
	at    string
	asked func() []string // ends the server
}

// notes are what a server was asked.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, line)
}

var servers = map[string]func(*testing.T) *server{
	"Daimon": func(t *testing.T) *server {
		n := &notes{}
		site := &httpd.Server{Handler: httpd.WithBody(0, func(w *httpd.Response, r *httpd.Request, _ []byte) act.Action {
			line := string(r.Method()) + " " + string(r.Target())
			n.add(line)
			_, _ = w.WriteString(line)
			return nil
		})}
		l := &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve}
		running := servertest.Start(t, act.Config{Schedulers: 2}, l.Setup)
		return &server{l.Addr().String(), func() []string {
			running.Group.Shutdown(servertest.Drain)
			require.NoError(t, running.End())
			return n.all
		}}
	},
	"net/http":         func(t *testing.T) *server { return standard(t, "", 1) },
	"net/http, HTTP/2": func(t *testing.T) *server { return standard(t, "h2 ", 2) },
	"nginx": func(t *testing.T) *server {
		log := filepath.Join(t.TempDir(), "log")
		p, at := nginx(t, `log_format asked "$request_method $request_uri";`,
			"access_log "+log+` asked; return 200 "$request_method $request_uri";`)
		return &server{"unix:" + at, func() []string {
			p.Signal(t, syscall.SIGQUIT)
			require.Zero(t, p.Exit(t))
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			return strings.Split(strings.TrimSpace(string(text)), "\n")
		}}
	},
}

func standard(t *testing.T, protocol string, version int) *server {
	n := &notes{}
	s := backEnd{}.server()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n.add(r.Method + " " + r.RequestURI)
		if r.ProtoMajor != version {
			n.add(r.Proto)
		}
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI)
	})
	at, end := runs(t, s)
	return &server{protocol + at, func() []string {
		end()
		return n.all
	}}
}

// hidden are requests with a request in their content, or in what may be taken for it. They are good, and one.
var hidden = []string{
	"POST /N HTTP/1.1\nHost: a\nLENGTH\n\nSMUGGLED",
	"GET /N HTTP/1.1\nHost: a\nLENGTH\n\nSMUGGLED",
	"HEAD /N HTTP/1.1\nHost: a\nLENGTH\n\nSMUGGLED",
	"DELETE /N HTTP/1.1\nHost: a\nLENGTH\n\nSMUGGLED",
	"OPTIONS /N HTTP/1.1\nHost: a\nLENGTH\n\nSMUGGLED",
	"M-SEARCH /N HTTP/1.1\nHost: a\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nConnection: Content-Length\nLENGTH\n\nSMUGGLED",
	"GET /N HTTP/1.1\nHost: a\nConnection: keep-alive, content-length, host\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nExpect: 100-continue\nLENGTH\n\nSMUGGLED",
	"GET /N HTTP/1.1\nHost: a\nExpect: 100-continue\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nUpgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMA\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nTransfer_Encoding: chunked\nContent_Length: 0\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nX-Transfer-Encoding: chunked\nX-HTTP-Method-Override: GET\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nContent-Type: multipart/byteranges; boundary=x\nRange: bytes=0-1\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nMax-Forwards: 0\nTrailer: Content-Length\nTE: chunked\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.0\nHost: a\nConnection: keep-alive\nLENGTH\n\nSMUGGLED",
	"POST /N HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n23;a=\"SIZE\"\nSMUGGLED\n0\n\n",
	"POST /N HTTP/1.1\nHost: a\nTransfer-Encoding: Chunked\nConnection: Transfer-Encoding\n\n023\nSMUGGLED\n0\n\n",
	"GET /N HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0000000000000023\nSMUGGLED\n0\n\n",
	"POST /N HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTrailer: X\n\n0\nX: GET /smuggled HTTP/1.1\nY: a\n\n",
	"POST /N HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nConnection: Trailer\nTrailer: X\n\n1\nx\n0\nX: a\n\n",
}

// Whatever is behind the gateway sees the requests that the gateway has taken, each once, and none that was hidden in one of
// them. A client gets the answers to its own requests.
func TestNothingIsSmuggledThroughTheGateway(t *testing.T) {
	outside(t)
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			p := &proxy{name: "gateway", network: "tcp", at: program(t, "", s.at).Addr}
			victims := &load{at: p.at, kinds: []kind{{"GET", "/victim/", 0}}}
			victims.want = func(_ kind, n int, _ string) string { return fmt.Sprint("GET /victim/", n) }
			victims.begin(2)
			want := map[string]int{}
			for i, says := range smuggling.Requests() {
				before := fmt.Sprintf("GET /before/%d HTTP/1.1\nHost: a\n\n", i)
				for _, text := range []string{raw(says), raw(before + says)} {
					for _, pieces := range [][]string{{text}, {text[:len(text)/2], text[len(text)/2:]}} {
						all := p.answers(t, "GET", pieces...)
						require.NotEmpty(t, all, "%q", text)
						require.GreaterOrEqual(t, all[len(all)-1].status, 400, "%q", text)
						for _, m := range all[:len(all)-1] {
							require.Equal(t, fmt.Sprintf("GET /before/%d", i), m.body)
							want[m.body]++
						}
					}
				}
			}
			for i, says := range hidden {
				method, _, _ := strings.Cut(says, " ")
				target := fmt.Sprintf("/hidden/%d", i)
				fill := strings.NewReplacer("/N", target, "LENGTH", "Content-Length: 35", "SMUGGLED", smuggling.Smuggled)
				text := fill.Replace(says)
				all := p.answers(t, method, raw(text), raw("GET "+target+"/after HTTP/1.1\nHost: a\nConnection: close\n\n"))
				require.Len(t, all, 2, "%q", text)
				if method != "HEAD" {
					require.Equal(t, method+" "+target, all[0].body)
				}
				require.Equal(t, "GET "+target+"/after", all[1].body, "%q", text)
				want[method+" "+target]++
				want["GET "+target+"/after"]++
			}
			victims.end(t)
			for n := range victims.number.Load() {
				want[fmt.Sprint("GET /victim/", n+1)]++
			}
			got := map[string]int{}
			for _, line := range s.asked() {
				got[line]++
			}
			require.Equal(t, want, got)
		})
	}
}

// answers sends pieces, and returns the final answers until the end of the connection. The method is that of the first request.
func (p *proxy) answers(t *testing.T, method string, pieces ...string) (all []*message) {
	k := p.dial(t)
	defer k.Close()
	for _, piece := range pieces {
		_, _ = io.WriteString(k, piece)
	}
	for {
		m, err := k.answer(method)
		if err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%q", pieces)
			return all
		}
		m.read()
		all, method = append(all, m), "GET"
	}
}

// A request whose content is cut off is never whole for the server (RFC 9112 8).
func TestARequestThatIsCutOff(t *testing.T) {
	outside(t)
	p := ours(t, newOrigin(t))
	for _, method := range []string{"POST", "PUT", "GET"} {
		for _, rest := range []string{"Content-Length: 20000\n\nhello", "Transfer-Encoding: chunked\n\n5\nhello\n",
			"Transfer-Encoding: chunked\n\n5\nhello\n0\nX: a"} {
			p.begin("")
			k := p.dial(t)
			_, err := io.WriteString(k, raw(method+" / HTTP/1.1\nHost: a\n"+rest))
			require.NoError(t, err)
			exectest.Eventually(t, patience, "the request", func() (come bool) {
				p.note(func() { come = len(p.seen) == 1 })
				return come
			})
			require.NoError(t, k.Close())
			require.True(t, p.finish(t)[0].cut, "%s %q", method, rest)
		}
	}
}

// Nothing that a server says too much is an answer to another request.
func TestNoAnswerGoesToAnotherRequest(t *testing.T) {
	outside(t)
	p := ours(t, newOrigin(t))
	rows := slices.Clone(sections["answers"])
	for _, first := range []string{
		ok + length, "HTTP/1.1 304 Not Modified\n\n", "HTTP/1.1 204 No Content\n\n",
		ok + "Transfer-Encoding: chunked\n\n2\nok\n0\n\n",
		ok + "Content-Length: 0\nContent-Length: 0\n\n", ok + "Content-Length: 0\nTransfer-Encoding: chunked\n\n0\n\n",
		"HTTP/1.1 101 Switching Protocols\n\n",
	} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			rows = append(rows, row{says: method + " / HTTP/1.1\nHost: a\n\n",
				answer: first + "HTTP/1.1 200 OK\nContent-Length: 8\n\nsmuggled"})
		}
	}
	for _, r := range rows {
		said := strings.Join(p.passes(t, r), "\n")
		require.NotContains(t, said, "not asked for", "%q", r.answer)
		require.NotContains(t, said, "smuggled", "%q", r.answer)
		require.Equal(t, []string{"< kept"}, p.says(t, row{}), "another client, after %q", r.answer)
	}
}
