package press

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, pace time.Duration) (*Shop, *servertest.Running) {
	x := &Shop{Pace: pace}
	x.Door = &service.TCP{Address: "127.0.0.1:0", Handler: x.Serve, MaxConns: 100}
	return x, servertest.Start(t, act.Config{Schedulers: 2}, x.Setup)
}

// post sends a job.
func (x *Shop) post(t *testing.T, customer, text string) net.Conn {
	c, err := net.Dial("tcp", x.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	_, err = fmt.Fprintf(c, "POST /customers/%s/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", customer, len(text), text)
	require.NoError(t, err)
	return c
}

// status reads the answer, and closes the connection.
func status(t *testing.T, c net.Conn) int {
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, c.Close())
	return answer.StatusCode
}

// filled is a message that fills the queue.
type filled struct{}

func (filled) at(c *customer, _ *process.Self[message]) { c.queue = make([]submit, maxQueue) }

// The queue of a customer is bounded, and so is the number of customers: beyond the bounds a request is refused at once.
func TestBoundsRefuseRequests(t *testing.T) {
	x, r := open(t, time.Millisecond)
	require.NoError(t, x.customer("ada", true).Send(x.sys, filled{}))
	x.mu.Lock()
	for i := range maxCustomers - 1 {
		x.customers[fmt.Sprint("c", i)] = process.Ref[message]{}
	}
	x.mu.Unlock()
	for _, name := range []string{"ada", "ben"} {
		require.Equal(t, 503, status(t, x.post(t, name, "text")))
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	require.Empty(t, r.Logs.All())
}
