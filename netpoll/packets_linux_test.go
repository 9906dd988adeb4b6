package netpoll

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/race"
)

func init() { sendsFromLocal = true }

// The address that a packet was sent to is the one that the answer comes from: a client that has dialled takes no other.
func TestAnswersComeFromTheAddressThatWasAsked(t *testing.T) {
	for _, row := range []struct{ bind, to, local string }{
		{"0.0.0.0:0", "127.0.0.1", "127.0.0.1"},
		{"0.0.0.0:0", "127.0.0.2", "127.0.0.2"},
		{"[::]:0", "127.0.0.2", "127.0.0.2"},
		{"[::]:0", "::1", "::1"},
		{"[::1]:0", "::1", "::1"},
		{"0.0.0.0:0", "127.255.255.255", "127.0.0.1"}, // broadcast
		{"[::]:0", "127.255.255.255", "127.0.0.1"},
	} {
		t.Run(row.bind+" "+row.to, func(t *testing.T) {
			to := netip.MustParseAddr(row.to)
			if to.Is6() && !has(row.to) {
				t.Skip("no IPv6")
			}
			balanced(t)
			fd, at := udp(t, row.bind, PacketOptions{Times: true})
			client, err := sys.DialPackets(net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, at.Port())), PacketOptions{Broadcast: true})
			require.NoError(t, err)
			hold(t, client)
			if to.Is4() {
				require.NoError(t, unix.SetsockoptInt(client, unix.IPPROTO_IP, unix.IP_TOS, 1))
			} else {
				require.NoError(t, unix.SetsockoptInt(client, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 1))
			}
			var b PacketBuffer
			require.Empty(t, sendAll(t, client, &b, []Packet{{Data: []byte("question")}}))
			in := receiveAll(t, fd, &b, 1)[0]
			require.Equal(t, row.local, in.Local.String())
			require.Equal(t, uint8(1), in.ECN)
			require.False(t, in.At.IsZero())
			if row.local != row.to { // the client takes answers from where it sends to
				require.NoError(t, unix.Connect(client, &unix.SockaddrInet4{Addr: in.Local.As4(), Port: int(at.Port())}))
			}
			require.Empty(t, sendAll(t, fd, &b, []Packet{in}))
			answer := receiveAll(t, client, &b, 1)[0]
			require.Equal(t, "question", string(answer.Data))
			require.True(t, answer.At.IsZero(), "not asked for")
		})
	}
}

func TestThePacketsOfASocketHaveItsClass(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		if at[0] == '[' && !has("::1") {
			continue
		}
		balanced(t)
		fd, to := udp(t, at, PacketOptions{})
		from, _ := udp(t, at, PacketOptions{DSCP: 46, DontFragment: true})
		require.Empty(t, sendAll(t, from, new(PacketBuffer), []Packet{{Peer: to}}))
		oob := make([]byte, 256)
		polled(t, fd, unix.POLLIN)
		_, n, _, _, err := unix.Recvmsg(fd, nil, oob, 0)
		require.NoError(t, err)
		kind := map[byte]byte{'1': unix.IP_TOS, '[': unix.IPV6_TCLASS}[at[0]]
		require.True(t, bytes.Contains(oob[:n], []byte{kind, 0, 0, 0, 46 << 2})) // the type of a message, and its value
	}
}

// segments returns packets that leave in three groups, since one in the middle is shorter and another has no bytes.
func segments(to netip.AddrPort) (all []Packet) {
	for i := range PacketsAtOnce {
		p := Packet{Data: bytes.Repeat([]byte{byte(i)}, 900), Peer: to}
		switch i {
		case 20:
			p.Data = p.Data[:100]
		case 40:
			p.Data = nil
		case 50:
			p.Local = to.Addr()
		}
		all = append(all, p)
	}
	return all
}

func TestSegmentsAreGivenApart(t *testing.T) {
	balanced(t)
	fd, at := udp(t, "127.0.0.1:0", PacketOptions{})
	from, _ := udp(t, "127.0.0.1:0", PacketOptions{})
	require.NoError(t, sys.SetBuffers(fd, 1<<20, 0))
	require.NoError(t, unix.SetsockoptInt(from, unix.IPPROTO_IP, unix.IP_TOS, 2))
	var b PacketBuffer
	all := segments(at)
	for _, groups := range []bool{false, true} {
		b.calls.alone = 0
		refuse := map[bool]int{false: 1}[groups] // without checksums the kernel takes no groups: the packets leave one by one
		require.NoError(t, unix.SetsockoptInt(from, unix.SOL_SOCKET, unix.SO_NO_CHECK, refuse))
		for range 2 { // more than one call could receive, without coalescing
			require.Empty(t, sendAll(t, from, &b, all))
			require.Equal(t, map[bool]int{true: 0, false: 900}[groups], b.calls.alone)
		}
		in, more, err := sys.ReceivePackets(fd, &b)
		require.NoError(t, err)
		require.Equal(t, !groups, more)
		require.Len(t, in, map[bool]int{true: 2, false: 1}[groups]*PacketsAtOnce)
		for i, p := range in {
			require.Equal(t, string(all[i%PacketsAtOnce].Data), string(p.Data), i)
			require.Equal(t, uint8(2), p.ECN)
		}
		if more {
			receiveAll(t, fd, &b, PacketsAtOnce)
		}
	}
}

func TestDroppedPacketsAreCounted(t *testing.T) {
	balanced(t)
	fd, at := udp(t, "127.0.0.1:0", PacketOptions{ReceiveBuffer: 1})
	from, _ := udp(t, "127.0.0.1:0", PacketOptions{})
	var b PacketBuffer
	all := make([]Packet, 1000)
	for i := range all {
		all[i] = Packet{Peer: at, Data: make([]byte, 1+i)} // no groups: the kernel counts one as a packet
	}
	require.Empty(t, sendAll(t, from, &b, all))
	received := 0
	for end := time.Now().Add(patience); received+int(sys.PacketsDropped(fd)) < len(all); {
		require.True(t, time.Now().Before(end))
		in, _, _ := sys.ReceivePackets(fd, &b)
		received += len(in)
	}
	require.Equal(t, len(all), received+int(sys.PacketsDropped(fd)))
	require.NotZero(t, sys.PacketsDropped(fd))
}

func TestEachPeerHasOneOfTheSiblings(t *testing.T) {
	balanced(t)
	first, at := udp(t, "127.0.0.1:0", PacketOptions{})
	siblings := []int{first}
	for range 3 {
		fd, err := sys.JoinPackets(net.UDPAddrFromAddrPort(at), PacketOptions{})
		require.NoError(t, err)
		siblings = append(siblings, hold(t, fd))
	}
	var b PacketBuffer
	of := map[netip.AddrPort]int{}
	for range 32 {
		client, _ := udp(t, "127.0.0.1:0", PacketOptions{})
		p := Packet{Peer: at, Data: []byte("x")}
		require.Empty(t, sendAll(t, client, &b, []Packet{p, p, p}))
	}
	total := 0
	for end := time.Now().Add(patience); total < 96; {
		require.True(t, time.Now().Before(end))
		for i, fd := range siblings {
			in, _, _ := sys.ReceivePackets(fd, &b)
			for _, p := range in {
				if before, ok := of[p.Peer]; ok {
					require.Equal(t, before, i)
				}
				of[p.Peer] = i
				total++
			}
		}
	}
	used := map[int]bool{}
	for _, i := range of {
		used[i] = true
	}
	require.Greater(t, len(used), 1)
}

func TestPacketsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the detector allocates")
	}
	for name, open := range packetEnds {
		t.Run(name, func(t *testing.T) {
			balanced(t)
			e := open(t)
			var b PacketBuffer
			e.to.Data = []byte("x")
			all := []Packet{e.to, e.to, e.to}
			require.Zero(t, testing.AllocsPerRun(100, func() {
				_, _ = sys.SendPackets(e.a, &b, all)
				_, _, _ = sys.ReceivePackets(e.b, &b)
			}))
		})
	}
}
