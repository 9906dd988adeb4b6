//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// packetCalls has nothing.
type packetCalls struct{}

func listenUDP(netip.AddrPort, bool, PacketOptions) (int, error)            { return -1, unix.ENOTSUP }
func dialUDP(netip.AddrPort, PacketOptions) (int, error)                    { return -1, unix.ENOTSUP }
func listenUnixgram(string, PacketOptions, func(string) error) (int, error) { return -1, unix.ENOTSUP }
func dialUnixgram(string, PacketOptions) (int, error)                       { return -1, unix.ENOTSUP }
func adoptPackets(int) (net.Addr, bool, error)                              { return nil, false, unix.ENOTSUP }
func receivePackets(int, *PacketBuffer) ([]Packet, bool, error)             { return nil, false, unix.ENOTSUP }
func sendPackets(int, *PacketBuffer, []Packet) (int, error)                 { return 0, unix.ENOTSUP }
func setMember(int, netip.Addr, string, bool) error                         { return unix.ENOTSUP }
func packetsDropped(int) uint64                                             { return 0 }
