package browser

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for something before it calls that stuck.
const patience = exectest.Patience

// A server is an example that runs, built as a user does, by its own go.mod.
type server struct {
	*exectest.Program
	scheme string
}

// serve starts the server, with the files of root under /files/. No server, whatever it went through, may have failed a request.
func serve(t *testing.T, root string, flags ...string) *server {
	t.Helper()
	s := listen(t, "httpd", append([]string{"-root", root}, flags...)...)
	t.Cleanup(func() { require.NotContains(t, s.Said(), "failed") })
	return s
}

// listen starts a program on a free port of the loopback, unless the flags have another, and returns when it listens.
func listen(t *testing.T, program string, flags ...string) *server {
	t.Helper()
	scheme, secure := scheme(t)
	build := exectest.Build{Dir: "../../" + program}
	if !strings.Contains(program, "/") {
		build.Dir = "../../examples/" + program
	}
	s := &server{exectest.Start(t, build.Command(t, slices.Concat([]string{"-addr", "127.0.0.1:0"}, flags, secure)...)), scheme}
	s.Listens(t, s.Said)
	return s
}

// url is that of a path.
func (s *server) url(path string) string { return s.scheme + "://" + s.Addr + path }

// terminate asks the server for an orderly end.
func (s *server) terminate(t *testing.T) {
	t.Helper()
	s.Signal(t, syscall.SIGTERM)
}

// ends waits for the end of the server, which has to be orderly. Chromium does not look at connections that it has no
// use for, so it does not close its side: the server waits half a second for that.
func (s *server) ends(t *testing.T) {
	t.Helper()
	require.Zero(t, s.Exit(t))
	require.Contains(t, s.Said(), "ended in order")
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	exectest.Eventually(t, patience, what, f)
}

// TestWeb starts one browser, which takes two seconds, and has each part use a tab and a server of its own.
func TestWeb(t *testing.T) {
	browser := launch(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *tab)
	}{
		{"a page of many files", loaded},
		{"a page of many files, " + overTLS, loaded},
		{"a chat in two windows", func(t *testing.T, p *tab) { chatting(t, p, open(t, browser)) }},
		{"a chat on three processes", func(t *testing.T, p *tab) { together(t, p, open(t, browser), open(t, browser)) }},
		{"a queue of jobs", queued},
		{"what a server is doing", inspected},
		{"a stall", stalled},
		{"messages that are compressed, " + overTLS, messages},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, open(t, browser))
		})
	}
}

// overTLS is in the names of the parts in which servers speak TLS.
const overTLS = "over TLS"

// scheme returns the scheme of the test's servers, and the flag for it.
func scheme(t *testing.T) (scheme string, flags []string) {
	if strings.HasSuffix(t.Name(), strings.ReplaceAll(overTLS, " ", "_")) {
		return "https", []string{"-tls-self"}
	}
	return "http", nil
}
