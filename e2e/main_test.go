package e2e

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

const (
	patience = exectest.Patience // what a client or a test waits for before it calls the program stuck
	prompt   = 3 * time.Second   // "at once", on a machine that does other things; a lingering close takes 5 s
)

// defaultReactors is how many a server has by default: not one for each CPU if GOMAXPROCS or a quota, which
// the server has from us, allows fewer at a time. It is read before go test -cpu changes it for the test alone.
var defaultReactors = min(runtime.NumCPU(), runtime.GOMAXPROCS(0))

func TestMain(m *testing.M) {
	if how := os.Getenv(asHandlers); how != "" {
		serveHandlers(how)
		return
	}
	if os.Getenv(asHolder) != "" {
		serveHolder()
		return
	}
	if os.Getenv(asStalls) != "" {
		serveStalls()
		return
	}
	// Also with GOMAXPROCS=1, which the servers are to have: what is measured at the clients is not how these wait
	// for each other.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	exectest.Main(m)
}

const fromOutside = "builds programs and uses them from outside"

// outside begins a test of programs that have the race detector if the test has it.
func outside(t *testing.T) {
	t.Helper()
	tier.Need(t, tier.Full, fromOutside)
}

// plainly begins a test of programs without the race detector, which changes what memory and time cost.
func plainly(t *testing.T) {
	t.Helper()
	tier.Measure(t, fromOutside)
}

// example is the build of an example. It has the race detector if the tests have it.
func example(name string) exectest.Build { return exectest.Of("../examples/" + name) }

// plain is the build of an example without the race detector, which changes what memory and time cost.
func plain(name string) exectest.Build { return exectest.Build{Dir: "../examples/" + name} }

// run starts an example with these arguments, and with the given standard input, nil for none.
func run(t *testing.T, name string, in *os.File, arguments ...string) *exectest.Program {
	t.Helper()
	cmd := example(name).Command(t, arguments...)
	if in != nil {
		cmd.Stdin = in
	}
	return exectest.Start(t, cmd)
}

// serve starts an example on a free port of the loopback, and returns when it listens.
func serve(t *testing.T, name string, flags ...string) *exectest.Program {
	t.Helper()
	return listen(t, example(name).Command(t, append([]string{"-addr", "127.0.0.1:0"}, flags...)...))
}

// listen starts cmd and returns when it listens.
func listen(t *testing.T, cmd *exec.Cmd) *exectest.Program {
	t.Helper()
	p := exectest.Start(t, cmd)
	p.Listens(t, p.Said)
	return p
}

// dial connects to addr for the length of the test, with patience for everything that is done there.
func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// content returns n bytes that no other number has, so that an answer to another client is seen.
func content(number uint64, n int) []byte {
	data := make([]byte, n)
	_, _ = stream(number).Read(data) // never fails
	return data
}

func stream(number uint64) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)})
}
