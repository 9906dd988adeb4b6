package press

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/stage"
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

// On an order while customers wait and the press works, all are answered, and no job is left in a dynamic stage.
func TestOrderWhileBusy(t *testing.T) {
	const customers, each = 4, 5
	x, r := open(t, 10*time.Millisecond)
	var all []net.Conn
	for i := range customers * each {
		all = append(all, x.post(t, fmt.Sprint("c", i%customers), strings.Repeat("x", i*page)))
	}
	require.Eventually(t, func() bool {
		n := 0
		for i := range customers {
			n += x.asks(t, fmt.Sprint("c", i))
		}
		return n == customers*each
	}, servertest.Timeout, time.Millisecond)
	r.Group.Shutdown(servertest.Drain)
	for _, c := range all {
		require.Equal(t, 201, status(t, c))
	}
	require.NoError(t, r.End())
	require.Empty(t, r.Logs.All())
	require.Zero(t, x.sys.Stats().Alive)
	tasks, err := x.engine.List(context.Background(), stage.Selection{})
	require.NoError(t, err)
	require.Len(t, tasks, customers*each)
	for _, task := range tasks {
		require.Contains(t, []string{"SET", "PRINTED"}, task.Stage)
		require.Equal(t, stage.Normal, task.Status)
	}
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

// asks returns how many jobs a customer has sent.
func (x *Shop) asks(t *testing.T, name string) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Timeout)
	defer cancel()
	text, err := process.Call(ctx, x.customer(name, false), func(r process.Reply[string]) message { return account{r} })
	if err != nil {
		require.ErrorIs(t, err, process.ErrDead, "it has not come yet")
		return 0
	}
	var queued, set int
	_, err = fmt.Sscanf(text, name+": to be set: %d, set: %d", &queued, &set)
	require.NoError(t, err)
	return queued + set
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
