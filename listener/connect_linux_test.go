package listener_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// On Linux all addresses of 127.0.0.0/8 are loopback. The first one does not reply, since its backlog is full; the
// kernel refuses the second before anything is sent, and the third is refused by its machine.
func TestTheAddressThatConnectsFirstWins(t *testing.T) {
	l, clock := virtual(t)
	l.Engine()
	l.OS.Forget()
	mute, err := l.OS.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), 1)
	require.NoError(t, err)
	defer l.OS.Close(mute)
	_, port, err := net.SplitHostPort(l.OS.LocalAddr(mute).String())
	require.NoError(t, err)
	for range 2 { // one more than the backlog may wait
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		require.NoError(t, err)
		defer c.Close()
	}
	good := listenAndGreet(t, "tcp", "127.0.0.4:"+port)
	monitor.SetResolver(l.S, lookup(func(context.Context) (all []netip.Addr, err error) {
		for _, at := range []string{"127.0.0.1", "255.255.255.255", "127.0.0.3", "::ffff:127.0.0.4", "127.0.0.5"} {
			all = append(all, netip.MustParseAddr(at))
		}
		return all, nil
	}))
	c := &listener.Connect{Address: "a-name:" + port}
	var conn *listener.Conn
	o := spawn(l.S, act.Seq(c, act.Func(func(*act.Task) act.Directive { conn = c.Conn(); return act.Done })))
	l.Until("the first attempt", func() bool { return l.OS.Count("add") == 1 })
	pass(l, clock, 250*time.Millisecond-1)
	require.Equal(t, 1, l.OS.Count("add"))
	clock.Pass(1)
	require.Equal(t, act.Done, o.over(l), "%v", o.err)
	require.Equal(t, good.String(), conn.RemoteAddr().String())
	require.Equal(t, 3, l.OS.Count("add"), "the last one is not tried")
	conn.Abort()
}
