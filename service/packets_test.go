package service_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
)

// caller is a socket of package net that sends to one address.
type caller struct {
	t *testing.T
	net.Conn
}

func dialPackets(t *testing.T, to net.Addr) caller {
	t.Helper()
	var from net.Addr
	if at, ok := to.(*net.UnixAddr); ok {
		from = &net.UnixAddr{Name: filepath.Join(servertest.ShortDir(t), "c"), Net: at.Net}
	}
	c, err := (&net.Dialer{LocalAddr: from}).Dial(to.Network(), to.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return caller{t, c}
}

func (c caller) send(text string) {
	c.t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(c.t, err)
}

// hears requires the next packet to be text.
func (c caller) hears(text string) {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(servertest.Timeout)))
	b := make([]byte, 1<<16)
	n, err := c.Read(b)
	require.NoError(c.t, err)
	require.Equal(c.t, text, string(b[:n]))
}

// hearsNothing requires that no packet has come.
func (c caller) hearsNothing() {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
	n, err := c.Read(make([]byte, 1))
	require.Error(c.t, err, "%d", n)
}

// echoes answers each packet with the scheduler that it has come to, and what it says.
func echoes(c *listener.PacketConn, in []netpoll.Packet) {
	for i := range in {
		_ = c.Reply(&in[i], fmt.Appendf(nil, "%d %s", c.Scheduler().Index(), in[i].Data))
	}
}

// counts is a conversation that numbers its packets.
func counts(p *listener.Peer) act.Action {
	n := 0
	return act.Func(func(t *act.Task) act.Directive {
		for {
			in, err := p.Receive()
			if err != nil {
				return listener.Next(t, err)
			}
			n++
			_ = p.Send(fmt.Appendf(nil, "%d %s", n, in.Data))
			if string(in.Data) == "bye" {
				return act.Done
			}
		}
	})
}

// Each packet is answered once, by the same scheduler for a client.
func TestPacketsAreSpreadOverTheSchedulers(t *testing.T) {
	for _, address := range []string{loopback, "[::1]:0", "unix:"} {
		t.Run(address, func(t *testing.T) {
			if address == "unix:" {
				address += filepath.Join(servertest.ShortDir(t), "s")
			}
			servertest.CheckDescriptors(t)
			v := &service.PacketListener{Address: address, Handler: echoes}
			w := begin(t, act.Config{Schedulers: 3}, v.Setup)
			heard := map[string]bool{}
			for range 30 {
				c := dialPackets(t, v.Addr())
				c.send("")
				b := make([]byte, 100)
				n, err := c.Read(b)
				require.NoError(t, err)
				home, _, _ := strings.Cut(string(b[:n]), " ")
				heard[home] = true
				for i := range 5 {
					c.send(fmt.Sprint(i))
				}
				for i := range 5 {
					c.hears(fmt.Sprintf("%s %d", home, i))
				}
				c.hearsNothing()
				_ = c.Close()
			}
			if v.Addr().Network() == "udp" && netpoll.SpreadsPackets {
				require.Len(t, heard, 3)
			} else {
				require.Len(t, heard, 1)
			}
			require.NoError(t, w.order(servertest.Drain))
		})
	}
}

func TestConversations(t *testing.T) {
	v := &service.PacketListener{Address: loopback, Peers: service.Peers{Handler: counts}}
	w := begin(t, act.Config{Schedulers: 2}, v.Setup)
	a, b := dialPackets(t, v.Addr()), dialPackets(t, v.Addr())
	for i := range 5 {
		a.send("a")
		b.send("b")
		a.hears(fmt.Sprintf("%d a", i+1))
		b.hears(fmt.Sprintf("%d b", i+1))
	}
	a.send("bye")
	a.hears("6 bye")
	b.send("b")
	b.hears("6 b")
	a.send("a")
	a.hears("1 a")
	require.NoError(t, w.order(servertest.Drain))
}
