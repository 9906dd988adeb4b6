//go:build unix

package pgserver

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// Tests has the server of the tests of one package, and their database in it: other packages may share the server. The first
// test that asks for it starts it.
type Tests struct {
	Database string
	start    func() (*Server, error)
	running  atomic.Pointer[Server]
}

// NewTests returns Tests with a database whose name begins with prefix.
func NewTests(prefix string) *Tests {
	x := &Tests{Database: fmt.Sprint(prefix, "_", os.Getpid())}
	x.start = sync.OnceValues(func() (*Server, error) {
		s, err := Shared()
		if err != nil {
			return nil, err
		}
		x.running.Store(s)
		_, err = s.Create(x.Database)
		return s, err
	})
	return x
}

// Server returns the server. The test is one of the tier Full.
func (x *Tests) Server(t testing.TB) *Server {
	t.Helper()
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	s, err := x.start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Run runs the tests, and closes the server. It returns the exit status.
func (x *Tests) Run(m *testing.M) (code int) {
	code = m.Run()
	if s := x.running.Load(); s != nil {
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
