package service_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
)

// Two Groups stand for two processes, which share sockets in the same way, with as many, fewer and more schedulers. The second
// one begins before the first one gives its sockets away, or when that has ended: then clients that wait in the backlogs are
// left to it. The one that gives does not look there once more, and the other one closes none of the sockets.
func TestSocketsGoToAnotherGroup(t *testing.T) {
	for _, n := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 3}, {3, 2}, {3, 3}} {
		for _, name := range []string{"tcp", "unix"} {
			for _, wait := range []bool{false, true} {
				if wait && (name == "unix" || !netpoll.SpreadsTCP) {
					continue // where schedulers share a socket, a client that has woken one of them is accepted there
				}
				t.Run(fmt.Sprintf("%s, %d to %d, clients wait: %v", name, n[0], n[1], wait), func(t *testing.T) {
					path, address := filepath.Join(servertest.ShortDir(t), "s"), loopback
					if name == "unix" {
						address = "unix:" + path
					}
					servertest.CheckDescriptors(t)
					first := &service.Listener{Address: address, Handler: answers("first")}
					second := &service.Listener{Address: address, Handler: answers("second")}
					before := begin(t, act.Config{Schedulers: n[0]}, first.Setup)
					addr := first.Addr()
					sockets, err := first.Handover().Sockets()
					require.NoError(t, err)
					want := n[0]
					if name == "unix" || !netpoll.SpreadsTCP { // one for all schedulers
						want = 1
					}
					require.Len(t, sockets.FDs, want)
					others, err := second.Handover().Inherit([]*handover.Sockets{{Address: "elsewhere", FDs: []int{0}}, sockets})
					require.NoError(t, err)
					require.Len(t, others, 1)

					var waiting []net.Conn
					var after *world
					if wait {
						release := before.hold(indices[:n[0]]...)
						for range 40 { // so many come to all sockets
							waiting = append(waiting, servertest.Dial(t, addr))
						}
						first.Handover().Give()
						release()
						require.NoError(t, before.End())
						after = begin(t, act.Config{Schedulers: n[1]}, second.Setup)
					} else {
						after = begin(t, act.Config{Schedulers: n[1]}, second.Setup)
						first.Handover().Give()
						require.NoError(t, before.End(), "nothing is left when its clients have been answered")
					}
					require.Equal(t, addr, second.Addr())
					if name == "unix" {
						require.FileExists(t, path)
					}
					for range 20 {
						waiting = append(waiting, servertest.Dial(t, addr))
					}
					for _, c := range waiting {
						hears("second")(t, c)
						require.NoError(t, c.Close())
					}
					require.NoError(t, after.order(servertest.Drain))
					require.NoFileExists(t, path)
				})
			}
		}
	}
}

// indices are the indices of schedulers.
var indices = []int{0, 1, 2}

// socketOf returns a duplicate of the socket of a listener of package net.
func socketOf(t *testing.T, l syscall.Conn) (fd int) {
	raw, err := l.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(of uintptr) { fd, err = netpoll.System{}.Duplicate(int(of)) }))
	require.NoError(t, err)
	return fd
}

// A socket without SO_REUSEPORT, as systemd passes it. At the end it is left with what waits there to whoever has lent it.
func TestLentSocketsAreShared(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "s")
	for _, at := range []net.Addr{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.UnixAddr{Name: path, Net: "unix"}} {
		t.Run(at.Network(), func(t *testing.T) {
			servertest.CheckDescriptors(t)
			l, err := net.Listen(at.Network(), at.String())
			require.NoError(t, err)
			defer l.Close()
			x := newShares(2)
			v := &service.Listener{Name: "web", Address: "the name decides", Handler: x.of(answers("hello"))}
			others, err := v.Handover().Inherit([]*handover.Sockets{{Name: "web", FDs: []int{socketOf(t, l.(syscall.Conn))}, Lent: true}})
			require.NoError(t, err)
			require.Empty(t, others)
			w := begin(t, act.Config{Schedulers: 2}, v.Setup)
			require.Equal(t, l.Addr().String(), v.Addr().String())
			w.servedByAll(t, x, l.Addr())

			c := servertest.Dial(t, l.Addr())
			accepted, err := l.Accept()
			require.NoError(t, err)
			servertest.Send(t, c, "x")
			servertest.Expect(t, accepted, "x")
			require.NoError(t, accepted.Close())
			if at.Network() == "unix" {
				require.FileExists(t, path)
			}
		})
	}
}

func TestWhichSocketsAServiceInherits(t *testing.T) {
	l, err := net.Listen("tcp", loopback)
	require.NoError(t, err)
	defer l.Close()
	for _, row := range []struct {
		name, service, address string
		given                  handover.Sockets
		taken                  bool
	}{
		{"the address of the socket", "", l.Addr().String(), handover.Sockets{}, true},
		{"a socket with a name, for a service without", "", l.Addr().String(), handover.Sockets{Name: "web.socket"}, true},
		{"another address", "", "127.0.0.1:1", handover.Sockets{}, false},
		{"another kind of host", "", fmt.Sprintf(":%d", l.Addr().(*net.TCPAddr).Port), handover.Sockets{}, false},
		{"the name", "web", "127.0.0.1:1", handover.Sockets{Name: "web"}, true},
		{"another name, and the address", "web", l.Addr().String(), handover.Sockets{Name: "admin"}, false},
		{"the address as it was configured", "", "127.0.0.1:0", handover.Sockets{Address: "127.0.0.1:0"}, true},
		{"another address as configured", "", l.Addr().String(), handover.Sockets{Address: "127.0.0.1:0"}, false},
		{"an address that cannot be", "", "nothing", handover.Sockets{}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.given.FDs = []int{socketOf(t, l.(syscall.Conn))}
			defer row.given.Close()
			v := &service.Listener{Name: row.service, Address: row.address, Handler: echo.Echo}
			others, err := v.Handover().Inherit([]*handover.Sockets{&row.given})
			require.NoError(t, err)
			require.Equal(t, row.taken, len(others) == 0)
		})
	}
}

func TestWhatIsNoListeningSocketIsNotInherited(t *testing.T) {
	pipe, _, err := os.Pipe()
	require.NoError(t, err)
	defer pipe.Close()
	l, err := net.Listen("tcp", loopback)
	require.NoError(t, err)
	defer l.Close()
	connected := servertest.Dial(t, l.Addr())
	file, err := pipe.SyscallConn()
	require.NoError(t, err)
	var of int
	require.NoError(t, file.Control(func(fd uintptr) { of = int(fd) }))
	for name, fd := range map[string]int{
		"a pipe":       of,
		"a connection": socketOf(t, connected.(syscall.Conn)),
		"nothing":      12345,
	} {
		t.Run(name, func(t *testing.T) {
			v := &service.Listener{Address: loopback, Handler: echo.Echo}
			_, err := v.Handover().Inherit([]*handover.Sockets{{Address: loopback, FDs: []int{fd}}})
			require.ErrorContains(t, err, fmt.Sprintf("descriptor %d is not a socket that listens for streams", fd))
			if name == "a connection" {
				require.NoError(t, netpoll.System{}.Close(fd))
			}
		})
	}
}
