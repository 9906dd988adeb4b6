package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// customer is a connection to the shop.
type customer struct {
	*net.TCPConn
	t  *testing.T
	in *bufio.Reader
}

func visitShop(t *testing.T, shop *exectest.Program) *customer {
	c := dial(t, shop.Addr)
	return &customer{c, t, bufio.NewReader(c)}
}

func (c *customer) send(text string, args ...any) {
	c.t.Helper()
	_, err := fmt.Fprintf(c, text, args...)
	require.NoError(c.t, err)
}

// submit sends a job of so many bytes.
func (c *customer) submit(customer string, length int) {
	c.t.Helper()
	c.send("POST /customers/%s/jobs HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n%s", customer, length, strings.Repeat("x", length))
}

// get asks for what is at path.
func (c *customer) get(path string) (status int, body string) {
	c.t.Helper()
	c.send("GET %s HTTP/1.1\r\nHost: shop\r\n\r\n", path)
	return c.answer()
}

// answer is the next response, all of it.
func (c *customer) answer() (status int, body string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	require.NoError(c.t, err)
	all, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	require.NoError(c.t, r.Body.Close())
	return r.StatusCode, string(all)
}

func TestShop(t *testing.T) {
	t.Parallel()
	outside(t)
	underEachIdle(t, trades)
}

func trades(t *testing.T, idle idle) {
	shop := serve(t, "press", idle.with("-pace", "1ms")...)
	c := visitShop(t, shop)
	c.submit("ada", 3000)
	c.submit("ben", 10)
	c.submit("ada", 5) // as it comes: the jobs of one are set in this order
	for _, want := range []string{"job 1\n", "job 2\n", "job 3\n"} {
		status, body := c.answer()
		require.Equal(t, 201, status)
		require.Equal(t, want, body)
	}
	exectest.Eventually(t, patience, "both to be printed", func() bool {
		_, body := c.get("/customers/ada")
		return body == "ada: to be set: 0, set: 2, printed: 2\n"
	})
	exectest.Eventually(t, patience, "the last stage", func() bool { // which comes a moment later
		_, body := c.get("/jobs/1")
		return body == "job 1 of ada: PRINTED, NORMAL\n"
	})
	for _, path := range []string{"/customers/eve", "/jobs/4", "/jobs/x", "/jobs"} {
		status, _ := c.get(path)
		require.Equal(t, 404, status, path)
	}
	exectest.Eventually(t, patience, "the other job", func() bool {
		_, body := c.get("/jobs/2")
		return body == "job 2 of ben: PRINTED, NORMAL\n"
	})
	shop.Stop(t)
	require.Equal(t, []string{
		"job 1 of ada: PRINTED, NORMAL", "job 2 of ben: PRINTED, NORMAL", "job 3 of ada: PRINTED, NORMAL",
		"jobs: 3, customers: 2, of whom are left: 0",
	}, shop.Lines())
}

// One signal ends connections, processes and jobs that all have something under way. Each request that has begun is
// answered, no client is accepted any more, each job is at a static stage, no process is left, and the exit status is 0.
func TestSignalEndsConnectionsProcessesAndTasks(t *testing.T) {
	t.Parallel()
	outside(t)
	const customers, each = 25, 2
	shop := serve(t, "press", "-pace", "300ms", "-drain", patience.String(), "-reactors", "2")
	watch := visitShop(t, shop)
	watch.submit("eve", 1_000_000) // 500 pages
	watch.submit("eve", 1)
	for _, want := range []string{"job 1\n", "job 2\n"} {
		_, body := watch.answer()
		require.Equal(t, want, body)
	}
	exectest.Eventually(t, patience, "one job printed and one on the press", func() bool {
		_, first := watch.get("/jobs/1")
		_, second := watch.get("/jobs/2")
		return first == "job 1 of eve: PRINTING, IN_PROCESSING\n" && second == "job 2 of eve: PRINTED, NORMAL\n"
	})

	begun := visitShop(t, shop) // a request of which the half has come
	begun.send("POST /customers/eve/jobs HTTP/1.1\r\nHost: shop\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	status, err := begun.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", status)
	_, err = begun.in.ReadString('\n')
	require.NoError(t, err)
	begun.send("hello")

	var all []*customer
	for i := range customers * each {
		c := visitShop(t, shop)
		c.submit(fmt.Sprint("c", i%customers), 1+i*100)
		all = append(all, c)
	}
	for i := range customers {
		exectest.Eventually(t, patience, "both requests to have begun", func() bool {
			_, body := watch.get(fmt.Sprintf("/customers/c%d", i))
			var name string
			var queued, set int
			_, err := fmt.Sscanf(body, "%s to be set: %d, set: %d", &name, &queued, &set)
			return err == nil && queued+set == each
		})
	}

	shop.Signal(t, syscall.SIGTERM)
	exectest.Eventually(t, patience, "the door to be shut", func() bool {
		c, err := net.Dial("tcp", shop.Addr)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	require.False(t, shop.Gone(), "there are requests to be answered")
	_, err = watch.in.ReadByte()
	require.Equal(t, io.EOF, err, "a connection without a request is closed")
	begun.send("world")

	answered := map[string]bool{"job 1": true, "job 2": true}
	for _, c := range append(all, begun) {
		status, body := c.answer()
		require.Equal(t, 201, status)
		answered[strings.TrimSpace(body)] = true
		_, err := c.in.ReadByte()
		require.Equal(t, io.EOF, err)
		require.NoError(t, c.Close())
	}
	require.Len(t, answered, 2+customers*each+1, "each its own")
	require.NoError(t, watch.Close())

	require.Zero(t, shop.Exit(t))
	require.Contains(t, shop.Said(), "ended in order")
	require.NotContains(t, shop.Said(), "cut")
	lines := shop.Lines()
	require.Equal(t, "jobs: 53, customers: 26, of whom are left: 0", lines[len(lines)-1])
	static := regexp.MustCompile(`^(job \d+) of \w+: (SET|PRINTED), NORMAL$`)
	for _, line := range lines[:len(lines)-1] {
		found := static.FindStringSubmatch(line)
		require.NotNil(t, found, line)
		require.True(t, answered[found[1]], line)
		delete(answered, found[1])
	}
	require.Empty(t, answered, "jobs that are lost")
	require.Equal(t, "job 1 of eve: SET, NORMAL", lines[0], "it was taken off the press")
	require.Equal(t, "job 2 of eve: PRINTED, NORMAL", lines[1])
}
