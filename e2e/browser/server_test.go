package browser

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// patience is how long a test waits for something before it calls that stuck.
const patience = exectest.Patience

// A server is examples/httpd that runs, built as a user does, by the library's own go.mod.
type server struct {
	*exectest.Program
	scheme string
}

// serve starts the server on a free port of the loopback, with the files of root under /files/, and returns when it
// listens. No server, whatever it went through, may have failed a request.
func serve(t *testing.T, root string, flags ...string) *server {
	t.Helper()
	flags, scheme := append([]string{"-addr", "127.0.0.1:0", "-root", root}, flags...), "http"
	if strings.HasPrefix(t.Name(), strings.ReplaceAll("TestWeb/"+overTLS+"/", " ", "_")) {
		flags, scheme = append(flags, "-tls-self"), "https"
	}
	s := &server{exectest.Start(t, exectest.Of("../../examples/httpd").Command(t, flags...)), scheme}
	t.Cleanup(func() { require.NotContains(t, s.Said(), "failed") })
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

// ends waits for the end of the server, which has to be orderly and to come in time.
func (s *server) ends(t *testing.T, within time.Duration) {
	t.Helper()
	require.Zero(t, s.ExitWithin(t, within))
	require.Contains(t, s.Said(), "ended in order")
}

// holds counts the server's descriptors of a file.
func (s *server) holds(t *testing.T, path string) (n int) {
	t.Helper()
	for _, to := range s.Files(t) {
		if to == path {
			n++
		}
	}
	return n
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	exectest.Eventually(t, patience, what, f)
}
