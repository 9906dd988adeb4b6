package service_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
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

// asks sends a packet and requires the next to be the answer.
func (c caller) asks(text, answer string) {
	c.t.Helper()
	c.send(text)
	c.hears(answer)
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

// slow is the Waker of a conversation that waits for nothing else.
var slow act.Waker

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
			switch string(in.Data) {
			case "bye":
				return act.Done
			case "panic":
				panic("panic")
			case "slow": // it takes nothing until slow wakes it
				slow = t.Waker()
				return act.Wait
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

// packetsRow returns that of the only PacketListener of a scheduler.
func (w *world) packetsRow(index int) (row facts.Packets) {
	w.On(index, func(s *act.Scheduler) {
		s.Internals().EachTask(1, func(x *act.Task) bool {
			if l, ok := x.Action().(facts.Lister); ok {
				l.List(true, func(of any) bool { row = *of.(*facts.Packets); return true })
			}
			return true
		})
	})
	return row
}

// passes lets time pass on a stopped clock.
func (w *world) passes(c *servertest.Clock, d time.Duration) {
	c.Pass(d)
	for range 10 { // the first pass may have read the clock before
		w.On(0, func(*act.Scheduler) {})
	}
}

type clock = servertest.Clock

func TestConversations(t *testing.T) {
	for _, row := range []struct {
		name string
		of   service.Peers
		play func(w *world, c *clock, a, b, c2 caller)
	}{
		{"each has a state of its own, and begins anew when its action has finished", service.Peers{}, func(w *world, _ *clock, a, b, _ caller) {
			for i := range 5 {
				a.send("a")
				b.send("b")
				a.hears(fmt.Sprintf("%d a", i+1))
				b.hears(fmt.Sprintf("%d b", i+1))
			}
			a.send("bye")
			a.hears("6 bye")
			b.asks("b", "6 b")
			a.asks("a", "1 a")
		}},
		{"an idle one ends", service.Peers{}, func(w *world, c *clock, a, b, _ caller) {
			a.asks("a", "1 a")
			b.asks("b", "1 b")
			w.passes(c, time.Minute-1)
			b.asks("b", "2 b")
			w.passes(c, 1)
			require.Equal(t, 1, w.packetsRow(0).Peers)
			a.asks("a", "1 a")
			w.passes(c, time.Minute-2)
			b.asks("b", "3 b")
			w.passes(c, time.Hour)
			require.Zero(t, w.packetsRow(0).Peers)
		}},
		{"one more than there may be ends the one that has been idle for longest", service.Peers{Max: 2}, func(w *world, _ *clock, a, b, c caller) {
			a.asks("a", "1 a")
			b.asks("b", "1 b")
			a.asks("a", "2 a")
			c.asks("c", "1 c")
			a.asks("a", "3 a")
			b.asks("b", "1 b")
			a.asks("a", "4 a")
			require.EqualValues(t, 2, w.packetsRow(0).Evicted)
			require.Equal(t, 2, w.packetsRow(0).Peers)
		}},
		{"a slow one loses what it has no room for, and holds up no other", service.Peers{Mailbox: 3}, func(w *world, _ *clock, a, b, _ caller) {
			a.asks("slow", "1 slow")
			for i := range 5 {
				a.send(fmt.Sprint(i))
			}
			b.asks("b", "1 b")
			a.hearsNothing()
			w.On(0, func(*act.Scheduler) { slow.Wake() })
			for i := range 3 {
				a.hears(fmt.Sprintf("%d %d", i+2, i))
			}
			a.asks("a", "5 a")
			require.EqualValues(t, 2, w.packetsRow(0).Lost)
		}},
		{"what an action leaves is lost", service.Peers{}, func(w *world, _ *clock, a, b, _ caller) {
			w.On(0, func(*act.Scheduler) { // both come in one batch
				a.send("bye")
				a.send("a")
			})
			a.hears("1 bye")
			b.asks("b", "1 b")
			a.hearsNothing()
			require.EqualValues(t, 1, w.packetsRow(0).Lost)
		}},
		{"one that panics ends alone", service.Peers{}, func(w *world, _ *clock, a, b, _ caller) {
			b.asks("b", "1 b")
			a.asks("panic", "1 panic")
			b.asks("b", "2 b")
			require.Equal(t, []string{"panic: panic"}, w.failures())
			a.asks("a", "1 a")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c clock
			row.of.Handler = counts
			v := &service.PacketListener{Address: loopback, Peers: row.of}
			w := begin(t, act.Config{Schedulers: 1, Clock: &c}, v.Setup)
			row.play(w, &c, dialPackets(t, v.Addr()), dialPackets(t, v.Addr()), dialPackets(t, v.Addr()))
			require.NoError(t, w.order(servertest.Drain), "conversations end with the service")
		})
	}
}

// A sender without a name could not be answered.
func TestUnixSendersWithoutANameHaveNoConversation(t *testing.T) {
	address := "unix:" + filepath.Join(servertest.ShortDir(t), "s")
	v := &service.PacketListener{Address: address, Peers: service.Peers{Handler: counts}}
	w := begin(t, act.Config{Schedulers: 1}, v.Setup)
	nameless, err := net.Dial("unixgram", v.Addr().String())
	require.NoError(t, err)
	caller{t, nameless}.send("x")
	require.NoError(t, nameless.Close())
	a, b := dialPackets(t, v.Addr()), dialPackets(t, v.Addr())
	a.asks("a", "1 a")
	b.asks("b", "1 b")
	a.asks("a", "2 a")
	require.EqualValues(t, 1, w.packetsRow(0).Lost)
	require.NoError(t, w.order(servertest.Drain))
}

func TestAPanicOfAHandlerOfPackets(t *testing.T) {
	v := &service.PacketListener{Address: loopback, Handler: func(c *listener.PacketConn, in []netpoll.Packet) {
		if string(in[0].Data) == "panic" {
			panic("a mistake")
		}
		echoes(c, in)
	}}
	w := begin(t, act.Config{Schedulers: 1}, v.Setup)
	a := dialPackets(t, v.Addr())
	a.asks("a", "0 a")
	a.send("panic")
	eventually(t, "it is noticed", func() bool { return w.packetsRow(0).Panics == 1 || len(w.failures()) > 0 })
	require.Empty(t, w.failures(), "the service goes on")
	a.asks("a", "0 a")
	require.Len(t, w.Logs.FilterMessage("a handler of packets has panicked").All(), 1)
	require.NoError(t, w.order(servertest.Drain))
}

func TestPacketsOfASourceThatSendsTooFast(t *testing.T) {
	var clock servertest.Clock
	limits := &admission.Limiter{Messages: 1, MessageBurst: 2}
	v := &service.PacketListener{Address: loopback, Admit: limits.Admit, Handler: echoes}
	w := begin(t, act.Config{Schedulers: 1, Clock: &clock}, v.Setup)
	a := dialPackets(t, v.Addr())
	for _, text := range []string{"a", "b", "c", "d"} {
		a.send(text)
	}
	a.hears("0 a")
	a.hears("0 b")
	eventually(t, "they are counted", func() bool { return w.packetsRow(0).TooFast == 2 })
	w.passes(&clock, time.Second)
	a.asks("e", "0 e")
	require.NoError(t, w.order(servertest.Drain))
}

// What has arrived is answered, and then the socket closes.
func TestShutdownWithPackets(t *testing.T) {
	for name, v := range map[string]*service.PacketListener{
		"a handler":     {Address: loopback, Handler: echoes},
		"conversations": {Address: loopback, Peers: service.Peers{Handler: counts, Mailbox: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, act.Config{Schedulers: 1}, v.Setup)
			a := dialPackets(t, v.Addr())
			release := w.hold(0)
			for i := range 200 { // several batches
				a.send(fmt.Sprint(i))
			}
			w.Group.Shutdown(servertest.Drain)
			release()
			require.NoError(t, w.End())
			for i := range 200 {
				if v.Handler == nil {
					a.hears(fmt.Sprintf("%d %d", i+1, i))
				} else {
					a.hears(fmt.Sprintf("0 %d", i))
				}
			}
			_, err := a.Write([]byte("x"))
			require.NoError(t, err)
			_, err = a.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
	}
}

// What was sent has been received, or the kernel has dropped and counted it.
func TestEveryPacketIsCounted(t *testing.T) {
	n := tier.Choose(20_000, 200_000, 10_000_000)
	received := 0 // on the scheduler's thread
	var conn *listener.PacketConn
	v := &service.PacketListener{Address: loopback, Handler: func(c *listener.PacketConn, in []netpoll.Packet) {
		conn = c
		received += len(in)
	}}
	v.Options.ReceiveBuffer = 16 << 10
	w := begin(t, act.Config{Schedulers: 1}, v.Setup)
	var system netpoll.System
	fd, err := system.DialPackets(v.Addr(), netpoll.PacketOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, system.Close(fd)) }()
	var b netpoll.PacketBuffer
	batch := make([]netpoll.Packet, netpoll.PacketsAtOnce)
	for i := range batch {
		batch[i].Data = make([]byte, 100+i) // each is longer than the one before: the kernel counts a group that it drops as one
	}
	for sent := 0; sent < n; {
		k, err := system.SendPackets(fd, &b, batch[:min(len(batch), n-sent)])
		sent += k
		if err != nil {
			require.Contains(t, []error{syscall.EAGAIN, syscall.ENOBUFS}, err)
		}
	}
	var counts listener.PacketCounts
	require.Eventually(t, func() bool {
		w.On(0, func(*act.Scheduler) { counts = conn.Counts() })
		return int(counts.Received+counts.Dropped) == n
	}, servertest.Timeout, time.Millisecond, "of %d: %+v", n, &counts)
	require.EqualValues(t, received, counts.Received)
	t.Logf("%d received, %d dropped", counts.Received, counts.Dropped)
	require.NoError(t, w.order(servertest.Drain))
}

// As TestSocketsGoToAnotherGroup: what waits is left to the other program.
func TestSocketsForPacketsGoToAnotherGroup(t *testing.T) {
	for _, n := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 3}, {3, 2}} {
		for _, network := range []string{"udp", "unixgram"} {
			t.Run(fmt.Sprintf("%s, %d to %d", network, n[0], n[1]), func(t *testing.T) {
				path, address := filepath.Join(servertest.ShortDir(t), "s"), loopback
				if network == "unixgram" {
					address = "unix:" + path
				}
				says := func(text string) func(c *listener.PacketConn, in []netpoll.Packet) {
					return func(c *listener.PacketConn, in []netpoll.Packet) {
						for i := range in {
							_ = c.Reply(&in[i], []byte(text))
						}
					}
				}
				first := &service.PacketListener{Address: address, Handler: says("first")}
				second := &service.PacketListener{Address: address, Handler: says("second")}
				streams := &service.Listener{Address: address, Handler: answers("streams")}
				before := begin(t, act.Config{Schedulers: n[0]}, first.Setup)
				dialPackets(t, first.Addr()).asks("x", "first")
				sockets, err := first.Handover().Sockets()
				require.NoError(t, err)
				others, err := streams.Handover().Inherit([]*handover.Sockets{sockets})
				require.NoError(t, err)
				require.Len(t, others, 1, "a service for streams leaves them alone")
				others, err = second.Handover().Inherit(others)
				require.NoError(t, err)
				require.Empty(t, others)

				release := before.hold(indices[:n[0]]...)
				all := make([]caller, 40) // so many come to all sockets
				for i := range all {
					all[i] = dialPackets(t, first.Addr())
					if network == "udp" || i < 8 { // the kernel keeps ten for a Unix socket (unix(7))
						all[i].send("x")
					}
				}
				first.Handover().Give()
				release()
				require.NoError(t, before.End())
				after := begin(t, act.Config{Schedulers: n[1]}, second.Setup)
				require.Equal(t, first.Addr(), second.Addr())
				for i, c := range all {
					if network == "udp" || i < 8 {
						c.hears("second")
					}
					c.asks("x", "second")
				}
				require.NoError(t, after.order(servertest.Drain))
				require.NoFileExists(t, path)
			})
		}
	}
}

// As TestLentSocketsAreShared.
func TestLentSocketsForPackets(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "s")
	for network, at := range map[string]string{"udp": loopback, "unixgram": path} {
		l, err := net.ListenPacket(network, at)
		require.NoError(t, err)
		v := &service.PacketListener{Name: "dns", Address: "the name decides", Handler: echoes}
		others, err := v.Handover().Inherit([]*handover.Sockets{{Name: "dns", FDs: []int{socketOf(t, l.(syscall.Conn))}, Lent: true}})
		require.NoError(t, err)
		require.Empty(t, others)
		w := begin(t, act.Config{Schedulers: 2}, v.Setup)
		for range 10 {
			dialPackets(t, v.Addr()).asks("a", "0 a")
		}
		require.NoError(t, w.order(servertest.Drain))
		a := dialPackets(t, l.LocalAddr())
		a.send("b")
		b := make([]byte, 10)
		n, _, err := l.ReadFrom(b)
		require.NoError(t, err)
		require.Equal(t, "b", string(b[:n]))
		if network == "unixgram" {
			require.FileExists(t, path)
		}
		require.NoError(t, l.Close())
	}
}

// What was broken: the successor failed, since the socket was a member already. Its other schedulers have no sockets.
func TestAMemberOfAGroupIsInherited(t *testing.T) {
	first := &service.PacketListener{Address: "0.0.0.0:0", Groups: []string{"239.1.2.3%1"}, Handler: echoes}
	before := begin(t, act.Config{Schedulers: 2}, first.Setup)
	sockets, err := first.Handover().Sockets()
	require.NoError(t, err)
	require.Len(t, sockets.FDs, 1)
	second := &service.PacketListener{Address: first.Address, Groups: first.Groups, Handler: echoes}
	sockets.Address = second.Address
	others, err := second.Handover().Inherit([]*handover.Sockets{sockets})
	require.NoError(t, err)
	require.Empty(t, others)
	first.Handover().Give()
	require.NoError(t, before.End())
	after := begin(t, act.Config{Schedulers: 2}, second.Setup)
	again, err := second.Handover().Sockets()
	require.NoError(t, err)
	require.Len(t, again.FDs, 1)
	again.Close()
	require.NoError(t, after.order(servertest.Drain))
}

func TestPacketListenersThatCannotBe(t *testing.T) {
	handler, peers := echoes, service.Peers{Handler: counts}
	taken := &service.PacketListener{Address: loopback, Handler: handler}
	w := begin(t, act.Config{Schedulers: 2}, taken.Setup)
	for _, row := range []struct {
		v    *service.PacketListener
		want string
	}{
		{&service.PacketListener{Address: loopback}, "exactly one of Handler and Peers.Handler"},
		{&service.PacketListener{Address: loopback, Handler: handler, Peers: peers}, "exactly one of Handler and Peers.Handler"},
		{&service.PacketListener{Handler: handler}, "missing port"},
		{&service.PacketListener{Address: loopback, Handler: handler, Groups: []string{"192.0.2.1"}}, "joining 192.0.2.1"},
		{&service.PacketListener{Address: loopback, Handler: handler, Groups: []string{"224.0.0.251%none"}}, "224.0.0.251"},
		{&service.PacketListener{Address: loopback, Peers: service.Peers{Handler: counts, Max: -1}}, "negative"},
		{&service.PacketListener{Address: loopback, Handler: handler, Options: listener.PacketOptions{Queue: -1}}, "negative"},
		{&service.PacketListener{Address: taken.Addr().String(), Handler: handler}, "address already in use"},
	} {
		sentence(t, setUp(t, 2, row.v.Setup), row.want)
	}
	require.NoError(t, w.order(servertest.Drain))
}
