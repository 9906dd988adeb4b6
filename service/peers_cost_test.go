package service

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
)

// resting is an action without memory of its own.
type resting listener.Peer

func (p *resting) Act(t *act.Task) act.Directive {
	for {
		if _, err := (*listener.Peer)(p).Receive(); err != nil {
			return listener.Next(t, err)
		}
	}
}

// The bound of docs/limits.md.
func TestMeasureAConversationAtRest(t *testing.T) {
	const n = 50_000
	price.AtMost(t, "bytes of a conversation at rest", 400, func() float64 {
		l := servertest.New(t, act.Config{})
		v := &PacketListener{Address: "127.0.0.1:0", Peers: Peers{Handler: func(p *listener.Peer) act.Action { return (*resting)(p) }}}
		require.NoError(t, v.Setup(l.S))
		l.For(0) // which makes the memory of the socket
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range n {
			from := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
			v.demons[0].peers.take(&netpoll.Packet{Data: make([]byte, 100), Peer: netip.AddrPortFrom(from, 7)})
			if i%netpoll.PacketsAtOnce == 0 || i == n-1 {
				_, err := l.S.Step(2 * netpoll.PacketsAtOnce)
				require.NoError(t, err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Equal(t, n, v.demons[0].peers.tasks)
		return float64(after.HeapAlloc-before.HeapAlloc) / n
	})
}
