package proxyproto

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/internal/facts"
)

const (
	// beginV1 is the beginning of a header of version 1 (section 2.1).
	beginV1 = "PROXY "
	// maxV1 is the length of the longest one, with its end.
	maxV1 = 107
)

var (
	errLine    = errors.New("proxyproto: the PROXY line is longer than 107 bytes, or does not end in CR and LF")
	errFields  = errors.New("proxyproto: the PROXY line is malformed")
	errAddress = errors.New("proxyproto: the PROXY line has an address or a port that is none")
)

func parseV1(p []byte) (h Header, n int, err error) {
	line := p[:min(len(p), maxV1)]
	switch end := bytes.IndexByte(line, '\r'); {
	case end < 0 && len(line) < maxV1 && bytes.IndexByte(line, '\n') < 0, end >= 0 && end == len(line)-1 && len(line) < maxV1:
		return h, len(p) + 1, io.ErrUnexpectedEOF
	case end < 0 || end == len(line)-1 || line[end+1] != '\n':
		return h, 0, errLine
	default:
		line, n = line[:end], end+2
	}
	h.Version = 1
	word := strings.Split(string(line), " ")
	if word[1] == "UNKNOWN" { // whatever else is in the line
		return h, n, nil
	}
	if len(word) != 6 || word[1] != "TCP4" && word[1] != "TCP6" {
		return Header{}, 0, errFields
	}
	from, ok1 := addressV1(word[2], word[4], word[1] == "TCP4")
	to, ok2 := addressV1(word[3], word[5], word[1] == "TCP4")
	if !ok1 || !ok2 {
		return Header{}, 0, errAddress
	}
	h.Source, h.Destination = net.TCPAddrFromAddrPort(from), net.TCPAddrFromAddrPort(to)
	return h, n, nil
}

// addressV1 is strict: another server that reads the same line must not see another client.
func addressV1(ip, port string, v4 bool) (netip.AddrPort, bool) {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Is4() != v4 || addr.Zone() != "" {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || len(port) > 1 && port[0] == '0' {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr, uint16(n)), true
}

func (h *Header) appendV1(p []byte) []byte {
	from, to, ok := ips(h.Source, h.Destination)
	if !ok {
		return append(p, "PROXY UNKNOWN\r\n"...)
	}
	family := " TCP6 "
	if from.Addr().Is4() {
		family = " TCP4 "
	}
	p = append(append(p, "PROXY"...), family...)
	p = append(from.Addr().AppendTo(p), ' ')
	p = append(to.Addr().AppendTo(p), ' ')
	p = append(strconv.AppendUint(p, uint64(from.Port()), 10), ' ')
	p = strconv.AppendUint(p, uint64(to.Port()), 10)
	return append(p, "\r\n"...)
}

// ips returns the addresses and ports of two TCP addresses, both IPv4 or both IPv6, without zones.
func ips(source, destination net.Addr) (from, to netip.AddrPort, ok bool) {
	_, ok1 := source.(*net.TCPAddr)
	_, ok2 := destination.(*net.TCPAddr)
	from, to = facts.AddrPort(source), facts.AddrPort(destination)
	if !ok1 || !ok2 || !from.IsValid() || !to.IsValid() {
		return from, to, false
	}
	a, b := from.Addr().WithZone(""), to.Addr().WithZone("")
	if a.Is4() != b.Is4() {
		a, b = netip.AddrFrom16(a.As16()), netip.AddrFrom16(b.As16())
	}
	return netip.AddrPortFrom(a, from.Port()), netip.AddrPortFrom(b, to.Port()), true
}
