package proxyproto

import (
	"bytes"
	"errors"
	"io"
	"net"
)

// Header is what a proxy says about a connection. Further values of a header (TLVs) are checked for their form and skipped.
type Header struct {
	// Version is the version of the protocol: 1, whose header is a line of text, or 2, whose header is binary.
	Version int
	// Source is the address of the client, and Destination the one that it has connected to: both *net.TCPAddr or
	// *net.UnixAddr. Both are nil if the header has none (LOCAL, UNSPEC and UNKNOWN): the proxy speaks for itself, as in a
	// health check, or does not know.
	Source, Destination net.Addr
}

// maxHeader is the length of the longest header that is read, in bytes. A header of version 1 has at most 107.
const maxHeader = 4096

// errNone is the error of bytes that do not begin a header.
var errNone = errors.New("proxyproto: there is no PROXY header")

// Parse reads the header that p begins with, and returns its length. If p is only the beginning of one, err is
// io.ErrUnexpectedEOF, and with fewer than n bytes it stays so. Any other error is final. Nothing of p is kept.
func Parse(p []byte) (h Header, n int, err error) {
	switch {
	case len(p) == 0:
		return h, 1, io.ErrUnexpectedEOF
	case begins(p, beginV1):
		return parseV1(p)
	case begins(p, beginV2):
		return parseV2(p)
	}
	return h, 0, errNone
}

// begins reports whether p begins with all of what, or is the beginning of it.
func begins(p []byte, what string) bool {
	n := min(len(p), len(what))
	return bytes.Equal(p[:n], []byte(what)[:n])
}

// Append appends h to p in the form of its Version. Addresses that this form does not have are left out: the receiver then
// knows only that they are unknown. Version 1 has addresses of TCP only. An IPv4 address beside one of IPv6 is sent as
// IPv4-mapped. Append panics if there is no such version.
func (h *Header) Append(p []byte) []byte {
	switch h.Version {
	case 1:
		return h.appendV1(p)
	case 2:
		return h.appendV2(p)
	}
	panic("proxyproto: a Header of a version that is neither 1 nor 2")
}
