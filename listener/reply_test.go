package listener_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
)

// A client sends more than anybody reads, and goes on while it is answered. The task writes a megabyte
// and ends; what is left is nobody's turn.
func TestAReplyArrivesWholeThoughInputIsUnread(t *testing.T) {
	exchanges := tier.Choose(20, 50, 50)
	reply := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for name, row := range map[string]struct {
		network string
		end     func(*listener.Conn)
		all     bool
	}{
		"Close":                   {"tcp", func(c *listener.Conn) { _ = c.Close() }, true},
		"Close, on a Unix socket": {"unix", func(c *listener.Conn) { _ = c.Close() }, true},
		"Abort, for comparison":   {"tcp", (*listener.Conn).Abort, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			whole := 0
			for range exchanges {
				c, peer := l.Conn(row.network, listener.Limits{})
				servertest.Send(t, peer, "a request of which nobody reads the body")
				spawn(l.S, answer(c, reply, row.end))
				if heard := hearing(l, peer); bytes.Equal(reply, heard) {
					whole++
				}
			}
			l.Until("nothing lingers", func() bool { return l.OS.Count("close")+l.OS.Count("reset") == exchanges })
			if row.all {
				require.Equal(t, exchanges, whole)
				require.Zero(t, l.OS.Count("reset"))
			} else {
				require.Less(t, whole, exchanges)
			}
		})
	}
}

// answer writes all and ends the connection at once, without reading.
func answer(c *listener.Conn, all []byte, end func(*listener.Conn)) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		n, err := c.Write(all)
		if all = all[n:]; err != nil {
			return listener.Next(t, err)
		}
		end(c)
		return act.Done
	})
}

// hearing is what a client hears that still sends; it steps the server meanwhile.
func hearing(l *servertest.Stepped, peer net.Conn) []byte {
	l.T.Helper()
	heard := make(chan []byte, 1)
	go func() {
		time.Sleep(time.Millisecond)
		_, _ = peer.Write([]byte("more of the body"))
		all, _ := io.ReadAll(peer)
		_ = peer.Close()
		heard <- all
	}()
	var all []byte
	l.Until("the end of the answer", func() bool {
		select {
		case all = <-heard:
			return true
		default:
			return false
		}
	})
	return all
}
