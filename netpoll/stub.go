//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package netpoll

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"
)

// errSystem is the error of all calls: this package needs epoll or kqueue.
var errSystem = fmt.Errorf("netpoll: %s has neither epoll nor kqueue: %w", runtime.GOOS, errors.ErrUnsupported)

var errClosed = errSystem

const (
	spreadsTCP        = false
	inheritsKeepAlive = false
)

// selector cannot be opened, so no method of a Poller is ever reached.
type selector struct{}

func (*selector) open() error                              { return errSystem }
func (*selector) add(int, uint64, Ready) error             { return errSystem }
func (*selector) remove(int) error                         { return errSystem }
func (*selector) wait([]Event, time.Duration) (int, error) { return 0, errSystem }
func (*selector) wake()                                    {}
func (*selector) close() error                             { return errSystem }

func listenTCP(netip.AddrPort, bool, int) (int, error)                 { return -1, errSystem }
func (System) ListenUnix(string, int, func(string) error) (int, error) { return -1, errSystem }
func (System) Adopt(int) (net.Addr, bool, error)                       { return nil, false, errSystem }
func (System) Duplicate(int) (int, error)                              { return -1, errSystem }
func (System) Unlink(string) error                                     { return errSystem }
func accept(int) (int, error)                                          { return -1, errSystem }
func (System) DialTCP(netip.AddrPort) (int, bool, error)               { return -1, false, errSystem }
func (System) Waiting(int) bool                                        { return false }
func (System) DialUnix(string) (int, bool, error)                      { return -1, false, errSystem }
func (System) SocketError(int) error                                   { return errSystem }
func release()                                                         {}
func receive(int, []byte) (int, error)                                 { return 0, errSystem }
func send(int, []byte, []byte) (int, error)                            { return 0, errSystem }
func sendFile(int, *os.File, int64, int) (int, error)                  { return 0, errSystem }
func closeWrite(int) error                                             { return errSystem }
func closeFD(int) error                                                { return errSystem }
func (System) Reset(int) error                                         { return errSystem }
func localAddr(int) net.Addr                                           { return nil }
func peerAddr(int) net.Addr                                            { return nil }
func peerAddrPort(int) netip.AddrPort                                  { return netip.AddrPort{} }
func (System) SetNoDelay(int, bool) error                              { return errSystem }
func (System) SetKeepAlive(int, time.Duration) error                   { return errSystem }
func (System) SetBuffers(int, int, int) error                          { return errSystem }

// packetCalls has nothing.
type packetCalls struct{}

func receivePackets(int, *PacketBuffer) ([]Packet, bool, error) { return nil, false, errSystem }
func sendPackets(int, *PacketBuffer, []Packet) (int, error)     { return 0, errSystem }
func packetsDropped(int) uint64                                 { return 0 }

func (System) ListenPackets(net.Addr, PacketOptions, func(string) error) (int, error) {
	return -1, errSystem
}
func (System) JoinPackets(net.Addr, PacketOptions) (int, error) { return -1, errSystem }
func (System) DialPackets(net.Addr, PacketOptions) (int, error) { return -1, errSystem }
func (System) AdoptPackets(int) (net.Addr, bool, error)         { return nil, false, errSystem }
func (System) PacketAddr(int) net.Addr                          { return nil }
func (System) SetMember(int, netip.Addr, string, bool) error    { return errSystem }
