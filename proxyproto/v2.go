package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"strings"
)

const (
	// beginV2 is the beginning of a header of version 2 (section 2.2).
	beginV2 = "\r\n\r\n\x00\r\nQUIT\n"
	// fixedV2 is what each has: the beginning, version and command, family, and the length of the rest.
	fixedV2 = 16
	// unixName is the length of a Unix address.
	unixName = 108
)

// The byte of version and command, and that of family and protocol.
const (
	local = 0x20
	proxy = 0x21

	unspecified = 0x00
	tcp4        = 0x11
	tcp6        = 0x21
	unixStream  = 0x31
)

var (
	errVersion  = errors.New("proxyproto: the PROXY header has a version or a command that is unknown")
	errFamily   = errors.New("proxyproto: the PROXY header has a family that is unknown, or is of datagrams")
	errTooLong  = errors.New("proxyproto: the PROXY header is longer than 4096 bytes")
	errTooShort = errors.New("proxyproto: the PROXY header is shorter than its addresses")
	errTLV      = errors.New("proxyproto: a TLV of the PROXY header does not fit into it")
	errChecksum = errors.New("proxyproto: the checksum of the PROXY header is wrong")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func parseV2(p []byte) (h Header, n int, err error) {
	size, known := 0, true
	if len(p) > 13 {
		size, known = sizesV2[p[13]]
	}
	switch {
	case len(p) > 12 && p[12] != local && p[12] != proxy:
		return h, 0, errVersion
	case !known:
		return h, 0, errFamily
	case len(p) < fixedV2:
		return h, fixedV2, io.ErrUnexpectedEOF
	}
	n = fixedV2 + int(binary.BigEndian.Uint16(p[14:]))
	switch {
	case n > maxHeader:
		return h, 0, errTooLong
	case p[12] == proxy && n < fixedV2+size:
		return h, 0, errTooShort
	case len(p) < n:
		return h, n, io.ErrUnexpectedEOF
	}
	h.Version = 2
	if p[12] == local || size == 0 {
		return h, n, nil // the rest means nothing
	}
	if err := checkTLVs(p[:n], fixedV2+size); err != nil {
		return Header{}, 0, err
	}
	h.setV2(p[13], p[fixedV2:fixedV2+size])
	return h, n, nil
}

// sizesV2 are the lengths of the addresses, by the family. Datagrams do not come here.
var sizesV2 = map[byte]int{unspecified: 0, tcp4: 2*4 + 2*2, tcp6: 2*16 + 2*2, unixStream: 2 * unixName}

func (h *Header) setV2(family byte, p []byte) {
	if family == unixStream {
		h.Source = &net.UnixAddr{Net: "unix", Name: pathOf(p[:unixName])}
		h.Destination = &net.UnixAddr{Net: "unix", Name: pathOf(p[unixName:])}
		return
	}
	size := len(p)/2 - 2
	ports := p[2*size:]
	a, _ := netip.AddrFromSlice(p[:size])
	b, _ := netip.AddrFromSlice(p[size : 2*size])
	h.Source = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, binary.BigEndian.Uint16(ports)))
	h.Destination = net.TCPAddrFromAddrPort(netip.AddrPortFrom(b, binary.BigEndian.Uint16(ports[2:])))
}

// pathOf returns the name of a Unix address, as package net has it: an abstract one begins with @ in place of a zero.
func pathOf(p []byte) string {
	if p[0] == 0 {
		if name := bytes.TrimRight(p[1:], "\x00"); len(name) > 0 {
			return "@" + string(name)
		}
	}
	name, _, _ := bytes.Cut(p, []byte{0})
	return string(name)
}

// checkTLVs checks the form of the values after the addresses, and the checksum if there is one. Nothing else of them is used.
func checkTLVs(header []byte, from int) error {
	const checksum = 0x03
	summed := false
	for at := from; at < len(header); {
		rest := header[at:]
		if len(rest) < 3 || len(rest) < 3+int(binary.BigEndian.Uint16(rest[1:])) {
			return errTLV
		}
		n := int(binary.BigEndian.Uint16(rest[1:]))
		if rest[0] == checksum {
			if summed || n != 4 || binary.BigEndian.Uint32(rest[3:]) != sumOf(header, at+3) {
				return errChecksum
			}
			summed = true
		}
		at += 3 + n
	}
	return nil
}

// sumOf returns the checksum of a header, in which it lies at the given place: it counts as zero there (section 2.2.3).
func sumOf(header []byte, at int) uint32 {
	sum := crc32.Update(0, castagnoli, header[:at])
	sum = crc32.Update(sum, castagnoli, make([]byte, 4))
	return crc32.Update(sum, castagnoli, header[at+4:])
}

func (h *Header) appendV2(p []byte) []byte {
	begin := len(p)
	p = append(p, beginV2...)
	if h.Source == nil {
		return append(p, local, unspecified, 0, 0)
	}
	p = h.appendAddressesV2(append(p, proxy))
	binary.BigEndian.PutUint16(p[begin+14:], uint16(len(p)-begin-fixedV2))
	return p
}

// appendAddressesV2 appends the family, room for the length, and the addresses.
func (h *Header) appendAddressesV2(p []byte) []byte {
	if from, to, ok := ips(h.Source, h.Destination); ok {
		family := byte(tcp6)
		if from.Addr().Is4() {
			family = tcp4
		}
		p = append(append(append(p, family, 0, 0), from.Addr().AsSlice()...), to.Addr().AsSlice()...)
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(p, from.Port()), to.Port())
	}
	from, ok1 := h.Source.(*net.UnixAddr)
	to, ok2 := h.Destination.(*net.UnixAddr)
	if !ok1 || !ok2 || from == nil || to == nil || max(len(from.Name), len(to.Name)) > unixName {
		return append(p, unspecified, 0, 0)
	}
	return appendPath(appendPath(append(p, unixStream, 0, 0), from.Name), to.Name)
}

// appendPath is the reverse of pathOf.
func appendPath(p []byte, name string) []byte {
	begin := len(p)
	p = append(append(p, name...), strings.Repeat("\x00", unixName-len(name))...)
	if name != "" && name[0] == '@' {
		p[begin] = 0
	}
	return p
}
