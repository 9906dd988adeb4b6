package libraries

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	oracle "github.com/pires/go-proxyproto"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/proxyproto"
)

// addresses are pairs that a header may name.
func addresses() (all [][2]net.Addr) {
	at := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	for _, pair := range [][2]string{
		{"192.0.2.7:4711", "192.0.2.1:80"},
		{"[2001:db8::7]:4711", "[2001:db8::1]:80"},
		{"[2001:db8::7]:1", "192.0.2.1:65535"},
		{"192.0.2.7:4711", "[2001:db8::1]:80"},
		{"[::ffff:192.0.2.7]:4711", "[::ffff:192.0.2.1]:80"},
		{"0.0.0.0:0", "255.255.255.255:65535"},
	} {
		all = append(all, [2]net.Addr{net.TCPAddrFromAddrPort(at(pair[0])), net.TCPAddrFromAddrPort(at(pair[1]))},
			[2]net.Addr{net.UDPAddrFromAddrPort(at(pair[0])), net.UDPAddrFromAddrPort(at(pair[1]))})
	}
	for _, network := range []string{"unix", "unixgram"} {
		all = append(all, [2]net.Addr{&net.UnixAddr{Net: network, Name: "/a"}, &net.UnixAddr{Net: network, Name: strings.Repeat("b", 107)}})
	}
	return all
}

// FuzzHeaders has both read any bytes.
func FuzzHeaders(f *testing.F) {
	for _, version := range []int{1, 2} {
		for _, pair := range addresses() {
			h := proxyproto.Header{Version: version, Source: pair[0], Destination: pair[1]}
			f.Add(h.Append(nil))
		}
	}
	f.Add([]byte("PROXY UNKNOWN anything\r\nGET / HTTP/1.1\r\n"))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x20\x11\x00\x01?"))
	f.Fuzz(func(t *testing.T, p []byte) {
		h, n, err := proxyproto.Parse(p)
		in := bufio.NewReaderSize(bytes.NewReader(p), max(16, len(p)))
		theirs, failed := oracle.Read(in)
		switch {
		case err != nil && failed != nil:
			return
		case err != nil && stricter(theirs, err):
			return
		case failed != nil && err == nil && h.Version == 2 && p[12] == 0x21 && p[13] == 0:
			return // an unspecified family, which a receiver may accept
		}
		require.NoError(t, err, "theirs is %v", theirs)
		require.NoError(t, failed, "ours is %v", h)
		require.Equal(t, int(theirs.Version), h.Version)
		behind, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Equal(t, string(p[n:]), string(behind), "what is behind the header")
		if theirs.Command.IsLocal() {
			require.Nil(t, h.Source)
			require.Nil(t, h.Destination)
			return
		}
		require.Equal(t, said(theirs.SourceAddr), said(h.Source))
		require.Equal(t, said(theirs.DestinationAddr), said(h.Destination))
	})
}

// stricter reports whether err is one of what the other library does not look at: values and checksums, and the last 16 bytes
// of the longest header.
func stricter(theirs *oracle.Header, err error) bool {
	return theirs.Version == 2 && (strings.Contains(err.Error(), "TLV") || strings.Contains(err.Error(), "checksum") ||
		strings.Contains(err.Error(), "longer than"))
}

// said returns an address with its network. The other library knows no abstract Unix addresses, which it takes for none.
func said(a net.Addr) string {
	if a == nil {
		return ""
	}
	if strings.HasPrefix(a.String(), "@") && a.Network() != "tcp" {
		return a.Network() + " "
	}
	return a.Network() + " " + a.String()
}
