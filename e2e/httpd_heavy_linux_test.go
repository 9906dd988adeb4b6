package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

// servePlain serves without the race detector.
func servePlain(t *testing.T, flags ...string) *exectest.Program {
	t.Helper()
	return listen(t, plain("httpd").Command(t, append([]string{"-addr", "127.0.0.1:0"}, flags...)...))
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// visit asks once and reads the answer.
func visit(c net.Conn) error {
	if _, err := io.WriteString(c, get); err != nil {
		return err
	}
	return hearHello(bufio.NewReader(c))
}

// hearHello reads one answer to get, and no more than that.
func hearHello(in *bufio.Reader) error {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err == nil && string(body) != "Hello, World!" {
		err = fmt.Errorf("status %d: %q", response.StatusCode, body)
	}
	return err
}

// Far more than the server may keep goes through the echo to a client that reads slowly, and none of it stays.
func TestALargeBodyThroughTheEcho(t *testing.T) {
	plainly(t)
	total := tier.Choose(0, 1<<27, 1<<30)
	for name, head := range map[string]string{
		"with its length": fmt.Sprintf("Content-Length: %d\r\n\r\n", total),
		"in chunks":       "Transfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			server := servePlain(t)
			c := dial(t, server.Addr)
			require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
			piece := content(1, 1<<20)
			sent := make(chan error, 1)
			go func() { sent <- upload(c, head, piece, total) }()

			time.Sleep(time.Second) // a late reader, to begin with
			response, err := http.ReadResponse(bufio.NewReaderSize(c, 64<<10), nil)
			require.NoError(t, err)
			require.Equal(t, 200, response.StatusCode)
			got := make([]byte, len(piece))
			for n := 0; n < total; n += len(got) {
				_, err := io.ReadFull(response.Body, got)
				require.NoError(t, err)
				require.True(t, bytes.Equal(piece, got), "at %d", n)
				time.Sleep(2 * time.Millisecond)
			}
			_, err = response.Body.Read(got)
			require.Equal(t, io.EOF, err)
			require.NoError(t, <-sent)
			t.Logf("at most %d KiB resident", server.Peak(t)>>10)
			require.Less(t, server.Peak(t), 64<<20)
			server.Stop(t)
		})
	}
}

// upload sends a request whose body is piece over and over.
func upload(c net.Conn, head string, piece []byte, total int) error {
	out := bufio.NewWriterSize(c, 256<<10)
	chunked := strings.Contains(head, "chunked")
	fmt.Fprintf(out, "POST /echo HTTP/1.1\r\nHost: x\r\n%s", head)
	for n := 0; n < total; n += len(piece) {
		if chunked {
			fmt.Fprintf(out, "%x\r\n", len(piece))
		}
		_, _ = out.Write(piece) // a bufio.Writer keeps its error until Flush
		if chunked {
			fmt.Fprint(out, "\r\n")
		}
	}
	if chunked {
		fmt.Fprint(out, "0\r\n\r\n")
	}
	return out.Flush()
}

// Each of very many answers is the whole answer, in its place.
func TestManyPipelinedRequests(t *testing.T) {
	plainly(t)
	const conns, depth = 8, 50
	each := tier.Choose(0, 10_000, 125_000)
	server := servePlain(t)
	var all sync.WaitGroup
	failed := make(chan error, conns)
	for range conns {
		c := dial(t, server.Addr)
		require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
		all.Go(func() {
			go func() { // its error is the reader's
				requests := strings.Repeat(get, depth)
				for range each / depth {
					_, _ = io.WriteString(c, requests)
				}
			}()
			in := bufio.NewReaderSize(c, 64<<10)
			for range each {
				if err := hearHello(in); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	require.NoError(t, <-failed)
	require.Less(t, server.Peak(t), 64<<20)
	server.Stop(t)
}

// A client that asks without end and does not read is read no further: its answers would need memory.
func TestUnreadPipelineIsBounded(t *testing.T) {
	plainly(t)
	server := servePlain(t)
	before := server.Resident(t)
	const stuck = 20
	conns, sent := make([]*net.TCPConn, stuck), make([]int, stuck)
	var all sync.WaitGroup
	for i := range conns {
		conns[i] = dial(t, server.Addr)
		require.NoError(t, conns[i].SetWriteDeadline(time.Now().Add(2*time.Second)))
		all.Go(func() {
			requests := strings.Repeat(get, 1000)
			for n, err := 0, error(nil); err == nil; {
				n, err = io.WriteString(conns[i], requests)
				sent[i] += n
			}
		})
	}
	require.NoError(t, visit(dial(t, server.Addr)), "others are served meanwhile")
	all.Wait()
	// The high mark, the read limit and what a turn gathers, twice for the collector; and 4 MiB for the runtime.
	require.Less(t, server.Resident(t)-before, 4<<20+stuck*2*(64<<10+64<<10+8<<10))
	for i, c := range conns { // a client that reads then gets every answer
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		require.NoError(t, c.CloseWrite())
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, sent[i]/len(get), bytes.Count(got, []byte("\r\n\r\nHello, World!")))
	}
	server.Stop(t)
}

// A client that sends a head byte by byte has ten seconds for all of it. The other clients are served meanwhile.
func TestSlowLoris(t *testing.T) {
	plainly(t)
	t.Parallel()
	server := servePlain(t)
	const lorises = 200
	begun := time.Now()
	var all sync.WaitGroup
	statuses := make(chan string, lorises) // which come after ten seconds
	for range lorises {
		c := dial(t, server.Addr)
		all.Go(func() {
			for _, b := range []byte("GET / HTTP/1.1\r\nHost: x\r\nX-Slowly: byte by byte\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(700 * time.Millisecond)
			}
		})
		all.Go(func() {
			defer c.Close() // or the server lingers
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				statuses <- err.Error()
				return
			}
			statuses <- response.Status
		})
	}
	c := dial(t, server.Addr)
	for range 50 {
		require.NoError(t, visit(c))
		time.Sleep(50 * time.Millisecond)
	}
	require.Empty(t, statuses, "none of the visits has waited for them")
	all.Wait()
	took := time.Since(begun)
	require.GreaterOrEqual(t, took, 10*time.Second)
	require.Less(t, took, 20*time.Second, "all of a head would take half a minute")
	for range lorises {
		require.Equal(t, "408 Request Timeout", <-statuses)
	}
	server.Stop(t)
}

// Ten thousand clients that have been answered and stay cost a small record each.
func TestTenThousandIdleConnections(t *testing.T) {
	plainly(t)
	const n, each = 10_000, 3 << 10
	exectest.AllowDescriptors(t, n+200)
	server := servePlain(t)
	first := dial(t, server.Addr)
	require.NoError(t, visit(first))
	require.NoError(t, first.Close())
	before := server.Resident(t)
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = dial(t, server.Addr)
		require.NoError(t, conns[i].SetDeadline(time.Now().Add(2*time.Minute)))
		require.NoError(t, visit(conns[i]))
	}
	used := server.Resident(t) - before
	t.Logf("%d B resident for a connection", used/n)
	require.Less(t, used/n, each)
	for _, c := range conns {
		require.NoError(t, visit(c), "all of them still answer")
	}
	begun := time.Now()
	server.Signal(t, syscall.SIGTERM)
	for _, c := range conns {
		_, err := c.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err, "at once, and in order")
		require.NoError(t, c.Close())
	}
	require.Zero(t, server.Exit(t))
	require.Less(t, time.Since(begun), 4*time.Second, "idle connections do not delay the end")
}

// wrk is what others measure with; here it only must not see an error.
func TestWrk(t *testing.T) {
	plainly(t)
	for scheme, flags := range map[string][]string{"http": nil, "https": {"-tls-self"}} {
		t.Run(scheme, func(t *testing.T) {
			server := servePlain(t, flags...)
			out, err := exec.Command(tier.Tool(t, "wrk"), "-t2", "-c100", "-d1s", "--latency", scheme+"://"+server.Addr+"/").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NotContains(t, string(out), "Socket errors")
			require.NotContains(t, string(out), "Non-2xx")
			found := regexp.MustCompile(`(\d+) requests in`).FindSubmatch(out)
			require.NotNil(t, found, "%s", out)
			requests, err := strconv.Atoi(string(found[1]))
			require.NoError(t, err)
			require.Greater(t, requests, 1000)
			server.Stop(t)
		})
	}
}

// Clients that vanish in the middle of anything leave nothing behind.
func TestClientsThatVanish(t *testing.T) {
	outside(t)
	t.Run("http", func(t *testing.T) { vanish(t, false, "-root", ".") })
	t.Run("https", func(t *testing.T) { vanish(t, true, "-root", ".", "-tls-self") })
}

func vanish(t *testing.T, over bool, flags ...string) {
	server := serve(t, "httpd", flags...)
	enter := func() (client, *net.TCPConn) {
		c := dial(t, server.Addr)
		if !over {
			return c, c
		}
		s := secret{tls.Client(c, &tls.Config{InsecureSkipVerify: true})}
		require.NoError(t, s.Handshake())
		return s, c
	}
	first, _ := enter()
	require.NoError(t, visit(first))
	open := server.Descriptors(t)
	for _, words := range []string{
		"", "GET /", get[:len(get)-2], get, strings.Repeat(get, 5000), "GET /files/httpd_test.go HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 500_000),
		"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n" + strings.Repeat("x", 500_000),
	} {
		for i := range 20 {
			c, tcp := enter()
			require.NoError(t, c.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
			_, _ = io.WriteString(c, words) // what is not read back is not taken
			time.Sleep(time.Duration(i%4) * time.Millisecond)
			require.NoError(t, tcp.SetLinger(i%2*-1)) // 0: a reset
			require.NoError(t, tcp.Close())           // over TLS without close_notify
		}
	}
	exectest.Eventually(t, patience, "their descriptors", func() bool { return server.Descriptors(t) <= open })
	last, _ := enter()
	require.NoError(t, visit(last))
	server.Stop(t)
	require.NotContains(t, server.Said(), "failed")
}
