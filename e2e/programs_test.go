package e2e

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/fetch/fetch"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// What the small servers answer. Their clients half-close behind what they say.
func TestServersOfLines(t *testing.T) {
	outside(t)
	t.Parallel()
	const (
		answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, world!\n"
		last   = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\nConnection: close\r\n\r\nHello, world!\n"
		large  = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	)
	servers := map[string]*exectest.Program{}
	for _, row := range []struct{ program, says, hears string }{
		{"hello", "GET / HTTP/1.1\r\nHost:", ""},
		{"hello", "\r\n\r\n" + strings.Repeat("GET / HTTP/1.1\r\nHost: x\n\n", 1000), strings.Repeat(answer, 1000)},
		{"hello", "GET / HTTP/1.1\r\nconnection: CLOSE\r\n\r\nGET / HTTP/1.1\r\n\r\n", last},
		{"hello", "GET / HTTP/1.0\r\n\r\n", last},
		{"hello", "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", last},
		{"hello", "GET /" + strings.Repeat("x", 9000) + " HTTP/1.1\r\n\r\n", large},
		{"hello", "GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 2000) + "\r\n", large},
		{"hello", strings.Repeat("\r\n", 5000), large},
	} {
		if servers[row.program] == nil {
			servers[row.program] = serve(t, row.program, "-reactors", "2")
		}
		c := dial(t, servers[row.program].Addr)
		servertest.Send(t, c, row.says)
		require.NoError(t, c.CloseWrite())
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(got), row.hears), "%.60q\n%.200q", row.says, got)
	}
	for _, server := range servers {
		server.Stop(t)
		require.NotContains(t, server.Said(), "failed")
	}
}

// once sends text to the first client that connects.
func once(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		defer l.Close()
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// The programs that end by themselves. Each kind of failure has a row: what was asked for wrongly has status 2.
func TestProgramsThatEnd(t *testing.T) {
	outside(t)
	t.Parallel()
	dir := t.TempDir()
	a, b, none := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "none")
	require.NoError(t, os.WriteFile(a, []byte("a\n"), 0o600))
	require.NoError(t, os.WriteFile(b, nil, 0o600))
	sumA := "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  " + a
	sumB := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  " + b
	long := strings.Repeat("x", bufio.MaxScanTokenSize+1)
	type row struct {
		program   string
		arguments []string
		in        string
		status    int
		lines     []string // in any order
		says      string
	}
	rows := []row{
		{"checksum", []string{a, b}, "", 0, []string{sumA, sumB}, ""},
		{"checksum", []string{a, none, b}, "", 1, []string{sumA, sumB}, "none: no such file"},
		{"checksum", nil, "", 2, nil, "checksum: missing file\n"},
		{"checksum", []string{"-every", "0s", a}, "", 2, nil, "checksum: -every must be above 0: 0s\n"},
		{"remind", nil, "1ms one\n0s two\n\n2ms three", 1, []string{"one", "two", "three"}, `not understood: \"\"`},
		{"remind", nil, "1ms before\n" + long, 1, []string{"before"}, "line 2: bufio.Scanner: token too long"},
		{"remind", []string{"5s", "tea"}, "", 2, nil, "remind: unexpected argument \"5s\"\n"},
		{"pace", []string{"-tasks", "2", "-each", "2", "-rate", "1000"}, "", 0,
			[]string{"task 1, time 1", "task 1, time 2", "task 2, time 1", "task 2, time 2"}, ""},
		{"pace", []string{"-rate", "NaN"}, "", 2, nil, "pace: -rate must be from 1e-09 to 1e+09 times a second: NaN\n"},
		{"pace", []string{"-tasks", "-1"}, "", 2, nil, "pace: -tasks must not be negative: -1\n"},
		{"fetch", []string{"127.0.0.1:1", once(t, "")}, "", 1, nil, "connection refused"},
		{"fetch", []string{"127.0.0.1:1"}, "", 2, nil, "missing address"},
		{"fetch", []string{"-as", "poem", "a", "b"}, "", 2, nil, "-as must be one of action, cor"},
	}
	for _, form := range slices.Sorted(maps.Keys(fetch.Forms)) {
		rows = append(rows, row{"fetch", []string{"-as", form, once(t, "1\n3\n"), once(t, "2\n")}, "", 0, []string{"1", "2", "3"}, ""})
	}
	for _, row := range rows {
		t.Run(fmt.Sprintf("%s %.60s", row.program, strings.Join(row.arguments, " ")), func(t *testing.T) {
			reads, writes, err := os.Pipe()
			require.NoError(t, err)
			defer reads.Close()
			p := run(t, row.program, reads, row.arguments...)
			_, err = io.WriteString(writes, row.in)
			require.True(t, err == nil || len(row.in) > bufio.MaxScanTokenSize, err) // which need not be read whole
			require.NoError(t, writes.Close())
			require.Equal(t, row.status, p.Exit(t))
			var lines []string
			if p.Out() != "" {
				lines = p.Lines()
			}
			require.ElementsMatch(t, row.lines, lines)
			require.Contains(t, p.Said(), row.says)
		})
	}
}

// A signal ends a program that waits for its input, and for its time.
func TestASignalEndsAProgramThatWaits(t *testing.T) {
	outside(t)
	t.Parallel()
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer reads.Close()
	defer writes.Close()
	p := run(t, "remind", reads)
	_, err = io.WriteString(writes, "1h never\n0s now\n")
	require.NoError(t, err)
	exectest.Eventually(t, patience, "a line", func() bool { return p.Out() == "now\n" })
	p.Signal(t, syscall.SIGTERM)
	require.Equal(t, 1, p.Exit(t))
	require.Contains(t, p.Said(), "remind: shutdown: dropped 1 task, 1 demon")
}

// One signal ends connections, processes and jobs that all have something under way. A request that has begun is answered, and no
// job is lost.
func TestPress(t *testing.T) {
	outside(t)
	t.Parallel()
	shop := serve(t, "press", "-pace", "1ms", "-drain", patience.String(), "-reactors", "2")
	at := "http://" + shop.Addr
	require.Equal(t, "job 1\n", curl(t, "-d", "text", at+"/customers/ada/jobs"))
	exectest.Eventually(t, patience, "the last stage", func() bool { return curl(t, at+"/jobs/1") == "job 1 of ada: PRINTED, NORMAL\n" })
	require.Equal(t, "404", status(t, at+"/customers/eve"))

	begun := dial(t, shop.Addr)
	servertest.Send(t, begun, "POST /customers/ben/jobs HTTP/1.1\r\nHost: shop\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	servertest.Expect(t, begun, "HTTP/1.1 100 Continue\r\n\r\n")
	servertest.Send(t, begun, "hello")
	shop.Signal(t, syscall.SIGTERM)
	refused(t, shop)
	require.False(t, shop.Gone(), "there is a request to be answered")
	servertest.Send(t, begun, "world")
	answer, err := io.ReadAll(begun)
	require.NoError(t, err)
	require.Contains(t, string(answer), "HTTP/1.1 201 ")
	require.NoError(t, begun.Close())
	require.Zero(t, shop.Exit(t))
	require.Contains(t, shop.Said(), "ended in order")
	lines := shop.Lines()
	require.Equal(t, "job 1 of ada: PRINTED, NORMAL", lines[0])
	require.Regexp(t, `^job 2 of ben: (SET|PRINTED), NORMAL$`, lines[1])
	require.Equal(t, "jobs: 2, customers: 2, of whom are left: 0", lines[2])
}
