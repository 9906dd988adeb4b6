package e2e

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/stretchr/testify/require"
)

// patience is what a client or a test waits for before it calls the program stuck.
const patience = exectest.Patience

func TestMain(m *testing.M) { exectest.Main(m) }

// outside begins a test.
func outside(t *testing.T) {
	t.Helper()
	tier.Need(t, tier.Full, "builds programs and uses them from outside")
}

// shares has the programs whose schedulers share memory of their own: rooms, jobs, and what goes to a new process. They have the
// race detector if the tests have it.
var shares = map[string]bool{"chat": true, "echo": true, "graceful": true}

// example is the build of an example.
func example(name string) exectest.Build {
	return exectest.Build{Dir: "../examples/" + name, Race: race.Enabled && shares[name]}
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

// exits requires that a program ends at once, and says why in one sentence.
func exits(t *testing.T, name string, status int, says string, flags ...string) {
	t.Helper()
	p := exectest.Start(t, example(name).Command(t, flags...))
	require.Equal(t, status, p.Exit(t))
	require.Equal(t, name+": "+says+"\n", p.Said())
	require.Empty(t, p.Out())
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

// folder returns a new folder whose path is short enough for a Unix socket address of 108 bytes, which
// t.TempDir's, with the name of the test in it, is not.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestSite(t *testing.T) {
	outside(t)
	t.Parallel()
	root := t.TempDir()
	large := filepath.Join(root, "large.bin")
	require.NoError(t, os.WriteFile(large, content(1, 3<<20), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "small.txt"), []byte("a small file\n"), 0o644))
	for scheme, flags := range map[string][]string{"http://": {"-root", root}, "https://": {"-root", root, "-tls-self"}} {
		t.Run(scheme, func(t *testing.T) {
			server := serve(t, "httpd", flags...)
			curled(t, scheme+server.Addr, large)
			out, err := exec.Command(tier.Tool(t, "wrk"), "-t2", "-c100", "-d1s", scheme+server.Addr+"/").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NotContains(t, string(out), "Socket errors")
			require.NotContains(t, string(out), "Non-2xx")
			server.Stop(t)
			require.NotContains(t, server.Said(), "failed")
		})
	}
}

func curl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "curl"), append([]string{"-ksS", "--noproxy", "*", "--max-time", "120"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func curled(t *testing.T, url, large string) {
	require.Equal(t, "Hello, World!", curl(t, url+"/"))
	require.Equal(t, strings.Repeat("Hello, World!", 3), curl(t, url+"/", url+"/", url+"/"))
	require.Equal(t, "Hello, World!", curl(t, "-0", url+"/"))
	require.Equal(t, "Hello, World!2", curl(t, "-w", "%{http_version}", "--http2-prior-knowledge", url+"/"))
	require.Regexp(t, `(?s)^HTTP/1.1 200 OK\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\nContent-Length: 13\r\n`+
		`Content-Type: text/plain; charset=utf-8\r\n\r\n$`, curl(t, "--http1.1", "-I", url+"/"))

	whole := string(content(1, 3<<20))
	require.True(t, whole == curl(t, "--data-binary", "@"+large, url+"/echo"), "with its length, after 100 (Continue)")
	require.True(t, whole == curl(t, "-H", "Transfer-Encoding: chunked", "--data-binary", "@"+large, url+"/echo"), "in chunks")
	require.Empty(t, curl(t, "-d", "", url+"/echo"))

	require.True(t, whole == curl(t, url+"/files/large.bin"))
	require.True(t, whole[1<<20:2<<20] == curl(t, "-r", "1048576-2097151", url+"/files/large.bin"))
	require.Equal(t, "a small file\n", curl(t, url+"/files/small.txt"))
}
