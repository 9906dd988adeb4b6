package press

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// filled is a message that fills the queue.
type filled struct{}

func (filled) at(c *customer, _ *process.Self[message]) { c.queue = make([]submit, maxQueue) }

// The queue of a customer is bounded, and so is the number of customers: beyond the bounds a request is refused at once.
func TestBoundsRefuseRequests(t *testing.T) {
	x := &Shop{Pace: time.Millisecond}
	x.Door = &service.TCP{Address: "127.0.0.1:0", Handler: x.Serve, MaxConns: 100}
	r := servertest.Start(t, act.Config{Schedulers: 2}, x.Setup)
	require.NoError(t, x.customer("ada", true).Send(x.sys, filled{}))
	x.mu.Lock()
	for i := range maxCustomers - 1 {
		x.customers[fmt.Sprint("c", i)] = process.Ref[message]{}
	}
	x.mu.Unlock()
	for _, name := range []string{"ada", "ben"} {
		c := servertest.Dial(t, x.Addr())
		servertest.Send(t, c, "POST /customers/"+name+"/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntext")
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(answer), "HTTP/1.1 503 ")
		require.NoError(t, c.Close())
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	require.Empty(t, r.Logs.All())
}
