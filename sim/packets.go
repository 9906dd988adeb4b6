package sim

import (
	"errors"
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

func (e *completer) Packets(engine.PacketOptions) (engine.PacketSocket, error) {
	return nil, errors.ErrUnsupported
}

func (v *view) ListenUDP(netip.AddrPort, netpoll.PacketOptions) (int, error) {
	return -1, errors.ErrUnsupported
}
func (v *view) JoinUDP(netip.AddrPort, netpoll.PacketOptions) (int, error) {
	return -1, errors.ErrUnsupported
}
func (v *view) DialUDP(netip.AddrPort, netpoll.PacketOptions) (int, error) {
	return -1, errors.ErrUnsupported
}
func (v *view) ListenUnixgram(string, netpoll.PacketOptions, func(string) error) (int, error) {
	return -1, errors.ErrUnsupported
}
func (v *view) DialUnixgram(string, netpoll.PacketOptions) (int, error) {
	return -1, errors.ErrUnsupported
}
func (v *view) PacketAddr(int) net.Addr { return nil }
func (v *view) ReceivePackets(int, *netpoll.PacketBuffer) ([]netpoll.Packet, bool, error) {
	return nil, false, errors.ErrUnsupported
}
func (v *view) SendPackets(int, *netpoll.PacketBuffer, []netpoll.Packet) (int, error) {
	return 0, errors.ErrUnsupported
}
func (v *view) SetMember(int, netip.Addr, string, bool) error { return errors.ErrUnsupported }
func (v *view) PacketsDropped(int) uint64                     { return 0 }
