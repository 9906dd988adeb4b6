//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// udp opens a socket, and returns its address.
func udp(t testing.TB, addr string, o PacketOptions) (fd int, at netip.AddrPort) {
	fd, err := sys.ListenPackets(net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)), o, nil)
	require.NoError(t, err)
	return hold(t, fd), sys.PacketAddr(fd).(*net.UDPAddr).AddrPort()
}

func unixgram(t testing.TB) (fd int, path string) {
	path = filepath.Join(folder(t), "s")
	fd, err := sys.ListenPackets(&net.UnixAddr{Name: path}, PacketOptions{}, nil)
	require.NoError(t, err)
	return hold(t, fd), path
}

// sendAll sends packets, and returns the errors of those that were not sent.
func sendAll(t testing.TB, fd int, b *PacketBuffer, all []Packet) (refused []error) {
	for len(all) > 0 {
		n, err := sys.SendPackets(fd, b, all)
		if all = all[n:]; err != nil {
			refused, all = append(refused, err), all[1:]
		} else {
			require.Positive(t, n)
		}
	}
	return refused
}

// receiveAll receives n packets and copies them.
func receiveAll(t testing.TB, fd int, b *PacketBuffer, n int) (all []Packet) {
	for len(all) < n {
		polled(t, fd, unix.POLLIN)
		in, _, err := sys.ReceivePackets(fd, b)
		require.NoError(t, err)
		for _, p := range in {
			p.Data = bytes.Clone(p.Data)
			all = append(all, p)
		}
	}
	require.Len(t, all, n)
	return all
}

// ends are two sockets, with what the first needs to send to the second, and what the second reports of the first.
type ends struct {
	a, b     int
	to, from Packet
}

var packetEnds = map[string]func(testing.TB) ends{
	"IPv4": func(t testing.TB) ends { return udpEnds(t, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1") },
	"IPv6": func(t testing.TB) ends { return udpEnds(t, "[::1]:0", "[::1]:0", "::1") },
	"IPv6 from IPv4": func(t testing.TB) ends {
		if !mapsIPv4 {
			t.Skip("no socket has both versions")
		}
		return udpEnds(t, "127.0.0.1:0", "[::]:0", "127.0.0.1")
	},
	"unix": func(t testing.TB) ends {
		a, pathA := unixgram(t)
		b, pathB := unixgram(t)
		return ends{a, b, Packet{Path: pathB}, Packet{Path: pathA}}
	},
}

func udpEnds(t testing.TB, a, b, at string) ends {
	if !has(at) {
		t.Skip("the machine has no such address")
	}
	fa, from := udp(t, a, PacketOptions{})
	fb, to := udp(t, b, PacketOptions{})
	return ends{fa, fb, Packet{Peer: netip.AddrPortFrom(netip.MustParseAddr(at), to.Port())}, Packet{Peer: from}}
}

func TestPacketsComeInOrderWithTheirSender(t *testing.T) {
	for name, open := range packetEnds {
		t.Run(name, func(t *testing.T) {
			balanced(t)
			e := open(t)
			var b PacketBuffer
			for size := range 3 { // the memory is used again
				var all []Packet
				for i := range 3*PacketsAtOnce - 30*size {
					p := e.to
					p.Data = bytes.Repeat([]byte{byte(i)}, 1000*(i%3)/(size+1))
					all = append(all, p)
				}
				for len(all) > 0 {
					some := min(5, len(all)) // what a Unix socket on macOS has room for
					require.Empty(t, sendAll(t, e.a, &b, all[:some]))
					for i, in := range receiveAll(t, e.b, &b, some) {
						require.Equal(t, string(all[i].Data), string(in.Data))
						require.Equal(t, e.from.Peer, in.Peer)
						require.Equal(t, e.from.Path, in.Path)
						require.False(t, in.Truncated)
					}
					all = all[some:]
				}
			}
			_, _, err := sys.ReceivePackets(e.b, &b)
			require.Equal(t, unix.EAGAIN, err)
			e.from.Data = []byte("answer")
			if e.from.Peer.Addr().Is4() && name != "IPv4" {
				e.from.Peer = netip.AddrPortFrom(netip.AddrFrom16(e.from.Peer.Addr().As16()), e.from.Peer.Port())
			}
			require.Empty(t, sendAll(t, e.b, &b, []Packet{e.from}))
			answer := receiveAll(t, e.a, &b, 1)[0]
			require.Equal(t, "answer", string(answer.Data))
			require.Equal(t, e.to.Peer, answer.Peer)
			require.Equal(t, e.to.Path, answer.Path)
		})
	}
}

// What is refused does not hold up its neighbours.
func TestAnErrorIsThatOfOnePacket(t *testing.T) {
	dead := filepath.Join(folder(t), "dead")
	fd, err := sys.ListenPackets(&net.UnixAddr{Name: dead}, PacketOptions{}, nil)
	require.NoError(t, err)
	require.NoError(t, sys.Close(fd))
	for _, row := range []struct {
		network, name string
		change        func(*Packet)
		err           error
	}{
		{"IPv4", "too long", func(p *Packet) { p.Data = make([]byte, 65508) }, unix.EMSGSIZE},
		{"IPv6", "of an unknown zone", func(p *Packet) {
			p.Peer = netip.AddrPortFrom(netip.MustParseAddr("fe80::1%nowhere"), 9)
		}, unix.ENODEV},
		{"unix", "to a path that is not there", func(p *Packet) { p.Path += "x" }, unix.ENOENT},
		{"unix", "to a path whose socket is closed", func(p *Packet) { p.Path = dead }, unix.ECONNREFUSED},
		{"unix", "to a path that is too long", func(p *Packet) { p.Path = strings.Repeat("x", 200) }, unix.ENAMETOOLONG},
	} {
		t.Run(row.name, func(t *testing.T) {
			balanced(t)
			e := packetEnds[row.network](t)
			var b PacketBuffer
			all := []Packet{e.to, e.to, e.to}
			row.change(&all[1])
			all[0].Data, all[2].Data = []byte("before"), []byte("behind")
			require.Equal(t, []error{row.err}, sendAll(t, e.a, &b, all))
			in := receiveAll(t, e.b, &b, 2)
			require.Equal(t, "before behind", string(in[0].Data)+" "+string(in[1].Data))
		})
	}
}

// No event reports when another Unix socket has room: poll(2) does not know which one is meant.
func TestAUnixSocketWithoutRoomIsNoReasonToWait(t *testing.T) {
	balanced(t)
	e := packetEnds["unix"](t)
	var b PacketBuffer
	e.to.Data = make([]byte, 1000)
	var refused []error
	for refused == nil {
		refused = sendAll(t, e.a, &b, []Packet{e.to})
	}
	require.Equal(t, []error{unix.ENOBUFS}, refused)
}

func TestALongerPacketIsTruncated(t *testing.T) {
	balanced(t)
	e := packetEnds["unix"](t)
	var b PacketBuffer
	e.to.Data = make([]byte, LargestPacket+1)
	require.NoError(t, sys.SetBuffers(e.a, 0, 4*LargestPacket))
	require.Empty(t, sendAll(t, e.a, &b, []Packet{e.to}))
	in := receiveAll(t, e.b, &b, 1)[0]
	require.True(t, in.Truncated)
	require.Len(t, in.Data, LargestPacket)
}

func TestARefusalIsToldToTheOneWhoDialled(t *testing.T) {
	balanced(t)
	fd, at := udp(t, "127.0.0.1:0", PacketOptions{})
	client, err := sys.DialPackets(net.UDPAddrFromAddrPort(at), PacketOptions{})
	require.NoError(t, err)
	hold(t, client)
	var b PacketBuffer
	require.Empty(t, sendAll(t, client, &b, []Packet{{Data: []byte("1")}}))
	in := receiveAll(t, fd, &b, 1)
	require.Empty(t, sendAll(t, fd, &b, in))
	require.Equal(t, at, receiveAll(t, client, &b, 1)[0].Peer)
	require.NoError(t, unix.Dup2(client, fd)) // closes the server's
	require.Empty(t, sendAll(t, client, &b, []Packet{{Data: []byte("2")}}))
	polled(t, client, unix.POLLERR)
	_, _, err = sys.ReceivePackets(client, &b)
	require.Equal(t, unix.ECONNREFUSED, err)
	_, _, err = sys.ReceivePackets(client, &b)
	require.Equal(t, unix.EAGAIN, err)
}

func TestAPortOfUDPBelongsToOneProgram(t *testing.T) {
	balanced(t)
	_, at := udp(t, "127.0.0.1:0", PacketOptions{})
	for range 2 {
		_, err := sys.ListenPackets(net.UDPAddrFromAddrPort(at), PacketOptions{}, nil)
		require.Equal(t, unix.EADDRINUSE, err)
		fd, err := sys.JoinPackets(net.UDPAddrFromAddrPort(at), PacketOptions{})
		require.NoError(t, err)
		hold(t, fd)
	}
	_, err := sys.ListenPackets(&net.UDPAddr{}, PacketOptions{}, nil)
	require.Equal(t, unix.EINVAL, err)
}

func TestAStalePathIsReplacedByADatagramSocketToo(t *testing.T) {
	balanced(t)
	path := filepath.Join(folder(t), "s")
	stream, err := sys.ListenUnix(path, 0, nil)
	require.NoError(t, err)
	_, err = sys.ListenPackets(&net.UnixAddr{Name: path}, PacketOptions{}, nil)
	require.Equal(t, unix.EADDRINUSE, err, "a server of another kind")
	require.NoError(t, sys.Close(stream))
	fd, err := sys.ListenPackets(&net.UnixAddr{Name: path}, PacketOptions{}, func(at string) error { return os.Chmod(at, 0o600) })
	require.NoError(t, err)
	require.Equal(t, &net.UnixAddr{Name: path, Net: "unixgram"}, sys.PacketAddr(fd))
	require.NoError(t, sys.Unlink(path))
	require.FileExists(t, path, "a program receives there")
	client, err := sys.DialPackets(&net.UnixAddr{Name: path}, PacketOptions{})
	require.NoError(t, err)
	var b PacketBuffer
	require.Empty(t, sendAll(t, client, &b, []Packet{{Data: []byte("x")}}))
	require.Empty(t, receiveAll(t, fd, &b, 1)[0].Path, "nobody has named it")
	require.NoError(t, sys.Close(client))
	require.NoError(t, sys.Close(fd))
	require.NoError(t, sys.Unlink(path))
	require.NoFileExists(t, path)
}

func TestAdoptedSocketsForPackets(t *testing.T) {
	balanced(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	hold(t, fd)
	_, _, err = sys.AdoptPackets(fd)
	require.Equal(t, unix.EINVAL, err, "it has no address")
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	addr, spread, err := sys.AdoptPackets(fd)
	require.NoError(t, err)
	require.False(t, spread)
	require.Equal(t, addr, sys.PacketAddr(fd))
	_, _, err = sys.ReceivePackets(fd, new(PacketBuffer))
	require.Equal(t, unix.EAGAIN, err, "it does not block")
	shared, _ := udp(t, "127.0.0.1:0", PacketOptions{})
	_, spread, err = sys.AdoptPackets(shared)
	require.NoError(t, err)
	require.Equal(t, SpreadsPackets, spread)
	stream, _ := listen(t, loopback)
	_, _, err = sys.AdoptPackets(stream)
	require.Equal(t, unix.EPROTONOSUPPORT, err)
}

// sendsFromLocal reports whether Packet.Local has a meaning. The files for Linux set it.
var sendsFromLocal bool

func TestMembersOfAGroupGetItsPackets(t *testing.T) {
	for _, row := range []struct{ bind, group string }{{"[::]:0", "ff02::1234"}, {"0.0.0.0:0", "239.1.2.3"}} {
		t.Run(row.group, func(t *testing.T) {
			ip := netip.MustParseAddr(row.group)
			if ip.Is6() && !has("::1") {
				t.Skip("no IPv6")
			}
			balanced(t)
			fd, at := udp(t, row.bind, PacketOptions{DontFragment: ip.Is6(), DSCP: 46, Hops: 2})
			require.NoError(t, sys.SetMember(fd, ip, "1", true)) // the first interface is lo
			if ip.Is4() && sendsFromLocal {                      // which chooses the interface
				p := Packet{Data: []byte("x"), Peer: netip.AddrPortFrom(ip, at.Port()), Local: netip.MustParseAddr("127.0.0.1")}
				var b PacketBuffer
				require.Empty(t, sendAll(t, fd, &b, []Packet{p}))
				require.Equal(t, "x", string(receiveAll(t, fd, &b, 1)[0].Data))
			}
			require.NoError(t, sys.SetMember(fd, ip, "1", false))
			require.Equal(t, unix.EADDRNOTAVAIL, sys.SetMember(fd, ip, "1", false))
			require.Equal(t, unix.ENODEV, sys.SetMember(fd, ip, "nowhere", true))
			require.Equal(t, unix.EINVAL, sys.SetMember(fd, netip.MustParseAddr("192.0.2.1"), "", true))
		})
	}
}
