package publish_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/publish/publish"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
)

// counted is a Stream that counts its sends.
type counted struct {
	monitor.Stream
	sends *atomic.Int64
}

func (x counted) Send(head, p []byte, high int) (int, error) {
	x.sends.Add(1)
	return x.Stream.Send(head, p, high)
}

// Twenty messages that are posted back to back go to each subscriber in one send, or hardly more, also if they come from
// another reactor. What was broken: each posted function was a turn, so each message was a send.
func TestMeasureSendsOverTwoReactors(t *testing.T) {
	tier.Measure(t, "how many posts a pass finds")
	one, two := sends(t, 1), sends(t, 2)
	t.Logf("sends for 20,000 deliveries: on one reactor %.0f, on two %.0f", one, two)
	require.LessOrEqual(t, two, 1.2*one)
}

// sends returns the number of sends for 20 messages to 1,000 subscribers.
func sends(t *testing.T, reactors int) float64 {
	const subscribers, messages, bursts = 1000, 20, 20
	var n atomic.Int64
	count := func(c *listener.Conn) act.Action {
		_ = c.Wrap(func(s monitor.Stream) monitor.Stream { return counted{s, &n} })
		return nil
	}
	server := &service.TCP{Address: "127.0.0.1:0", Handler: publish.Serve, Filters: []listener.Filter{count}}
	r := servertest.Start(t, act.Config{Schedulers: reactors}, server.Setup)
	var all []net.Conn
	for range subscribers {
		c := servertest.Dial(t, server.Addr())
		servertest.Send(t, c, "sub news\n")
		servertest.Expect(t, c, "+ news\n")
		all = append(all, c)
	}
	text := strings.Repeat("x", 64)
	from := servertest.Dial(t, server.Addr())
	burst := func() {
		servertest.Send(t, from, strings.Repeat("pub news "+text+"\n", messages))
		for _, c := range all {
			servertest.Expect(t, c, strings.Repeat("news "+text+"\n", messages))
		}
	}
	burst()
	n.Store(0)
	for range bursts {
		burst()
	}
	mean := float64(n.Load()) / bursts
	for _, c := range append(all, from) {
		require.NoError(t, c.Close())
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
	return mean
}
