package nethttp_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/secure"
)

// The tests here compare this package with the server of net/http. A scene is played on net/http and on an Adapter. What it
// notes has to be the same on both. So net/http itself says what is right. Most scenes are rows of a table, which may state
// differences: see scenes_test.go.

// site is a server that has been started, with a handler that changes from scene to scene.
type site struct {
	name    string
	address string
	secure  bool
	stop    func() error
	log     journal
	trust   *tls.Config // of clients; nil without TLS

	handler atomic.Pointer[http.Handler]
	calls   atomic.Int32 // of the handler
	running atomic.Int32 // handlers that have not returned
}

// patience is for waits that end by themselves, unless something hangs.
const patience = servertest.Timeout

// A starter serves h on a new address, with TLS unless the config is nil.
type starter func(h http.Handler, cfg *tls.Config, log *journal) (address string, stop func() error, err error)

// world has a site of net/http and two of this package.
type world struct{ theirs, ours, inline *site }

// worlds are those without TLS and with it.
var worlds [2]world

// again is what a client asks to see whether a connection has lasted.
const again = "GET /again HTTP/1.1\nHost: a\nConnection: close\n\n"

func (v *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/again" {
		w.Header().Set("Again", "yes")
		return
	}
	v.running.Add(1)
	v.calls.Add(1)
	defer v.running.Add(-1)
	(*v.handler.Load()).ServeHTTP(w, r)
}

func open(name string, start starter, cfg *tls.Config) *site {
	v := &site{name: name, secure: cfg != nil}
	if cfg != nil {
		roots := x509.NewCertPool()
		roots.AddCert(cfg.Certificates[0].Leaf)
		v.trust = &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: cfg.NextProtos,
			ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	}
	var err error
	if v.address, v.stop, err = start(v, cfg, &v.log); err != nil {
		panic(err)
	}
	return v
}

// all are the tests of this package, with all worlds around them.
type all struct{ *testing.M }

func (a all) Run() int {
	cert, err := secure.SelfSigned()
	if err != nil {
		panic(err)
	}
	// The curve costs the least.
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"},
		CurvePreferences: []tls.CurveID{tls.X25519}}
	for i, cfg := range []*tls.Config{nil, cfg} {
		http1 := netHTTP(protocols((*http.Protocols).SetHTTP1))
		worlds[i] = world{open("net/http", http1, cfg), open("nethttp", ours, cfg), open("Inline", inline, cfg)}
	}
	status := a.M.Run()
	for _, w := range worlds {
		for _, v := range []*site{w.theirs, w.ours, w.inline} {
			if err := v.stop(); err != nil {
				fmt.Println(v.name, "has not ended:", err)
				status = max(status, 1)
			}
		}
	}
	return status
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(all{m}) }

// netHTTP is the server of net/http.
func netHTTP(p *http.Protocols) starter {
	return func(h http.Handler, cfg *tls.Config, j *journal) (string, func() error, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		var open sync.WaitGroup
		v := &http.Server{Handler: h, ErrorLog: log.New(j, "", 0), Protocols: p,
			ConnState: func(_ net.Conn, s http.ConnState) {
				switch s {
				case http.StateNew:
					open.Add(1)
				case http.StateClosed, http.StateHijacked:
					open.Done()
				}
			}}
		over := make(chan error, 1)
		go func() {
			if cfg == nil {
				over <- v.Serve(l)
				return
			}
			v.TLSConfig = cfg.Clone()
			over <- v.ServeTLS(l, "", "")
		}()
		return l.Addr().String(), func() error {
			err := v.Close()
			<-over
			open.Wait()
			return err
		}, nil
	}
}

// journal is what a server has logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// take returns what was logged since it was last called.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.text.Reset()
	return j.text.String()
}

// scene is what is played on each site. It notes what is to be compared.
type scene struct {
	testing.TB
	*site
	parts []part

	mu   sync.Mutex
	said []string // by handlers, since the last curtain
}

// part is a piece of a scene, with what was noted in it.
type part struct{ name, text string }

// compare plays a scene without TLS, which makes no difference but to the addresses of a request.
func compare(t *testing.T, play func(s *scene)) {
	t.Helper()
	worlds[0].compare(t, play)
}

// compare plays a scene. What it notes has to be the same.
func (w world) compare(t *testing.T, play func(s *scene)) {
	t.Helper()
	require.Equal(t, script(run(t, w.theirs, play)), script(run(t, w.ours, play)))
}

func run(t testing.TB, v *site, play func(s *scene)) []part {
	t.Helper()
	s := &scene{TB: t, site: v}
	s.part("")
	play(s)
	s.curtain()
	v.log.take()
	return s.parts
}

func script(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.text != "" {
			fmt.Fprintf(&b, "== %s\n%s", p.name, p.text)
		}
	}
	return b.String()
}

// part begins a new part.
func (s *scene) part(name string) { s.parts = append(s.parts, part{name: name}) }

// note notes a line. It is for the goroutine of the test.
func (s *scene) note(format string, args ...any) {
	s.parts[len(s.parts)-1].text += fmt.Sprintf(format, args...) + "\n"
}

// say notes a line of a handler.
func (s *scene) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, "handler: "+fmt.Sprintf(format, args...))
}

// curtain waits until no handler runs, and notes what they have said.
func (s *scene) curtain() {
	s.Helper()
	s.until("all handlers have returned", func() bool { return s.running.Load() == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.said {
		s.note("%s", line)
	}
	s.said = nil
}

// until waits for something that nobody reports.
func (s *scene) until(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(s, "it never came: "+what, "%s", s.name)
		}
	}
}

// handle sets the handler.
func (s *scene) handle(h http.Handler) { s.handler.Store(&h) }

func (s *scene) handleFunc(h func(w http.ResponseWriter, r *http.Request)) {
	s.handle(http.HandlerFunc(h))
}

// await waits for a channel to be closed or to have something. It is for any goroutine.
func await[T any](ch <-chan T) (v T, ok bool) {
	select {
	case v = <-ch:
		return v, true
	case <-time.After(patience):
		return v, false
	}
}
