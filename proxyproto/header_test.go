package proxyproto_test

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/stretchr/testify/require"
)

const signature = "\r\n\r\n\x00\r\nQUIT\n"

// binaryHeader returns a header of version 2.
func binaryHeader(command, family byte, rest string) string {
	return signature + string([]byte{command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

const (
	v4 = "\xc0\x00\x02\x07\xc0\x00\x02\x01\x12\x67\x00\x50" // from 192.0.2.7:4711 to 192.0.2.1:80
	v6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x12\x67\x00\x50"
)

// padded returns a Unix address.
func padded(name string) string { return name + strings.Repeat("\x00", 108-len(name)) }

// summed returns a header with a right checksum after the addresses, and one further value.
func summed() string {
	p := []byte(binaryHeader(0x21, 0x11, v4+"\x03\x00\x04\x00\x00\x00\x00\x02\x00\x01x"))
	binary.BigEndian.PutUint32(p[16+12+3:], crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)))
	return string(p)
}

func tcp(at string) net.Addr {
	a, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		panic(err)
	}
	return a
}

var readable = []struct {
	name, header string
	version      int
	source       string // with its network; "": none
	destination  string
}{
	{"a line for IPv4", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", 1, "tcp 192.0.2.7:4711", "tcp 192.0.2.1:80"},
	{"a line for IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n", 1, "tcp [2001:db8::7]:4711", "tcp [2001:db8::1]:80"},
	{"a line with an IPv4-mapped address", "PROXY TCP6 ::ffff:192.0.2.7 2001:db8::1 4711 80\r\n", 1, "tcp 192.0.2.7:4711", "tcp [2001:db8::1]:80"},
	{"the extremes of ports", "PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n", 1, "tcp 0.0.0.0:0", "tcp 255.255.255.255:65535"},
	{"a line that knows nothing", "PROXY UNKNOWN\r\n", 1, "", ""},
	{"the longest line", "PROXY UNKNOWN " + strings.Repeat("f", 107-16) + "\r\n", 1, "", ""},
	{"TCP over IPv4", binaryHeader(0x21, 0x11, v4), 2, "tcp 192.0.2.7:4711", "tcp 192.0.2.1:80"},
	{"TCP over IPv6", binaryHeader(0x21, 0x21, v6), 2, "tcp [2001:db8::7]:4711", "tcp [2001:db8::1]:80"},
	{"a Unix stream", binaryHeader(0x21, 0x31, padded("/a")+padded("/b")), 2, "unix /a", "unix /b"},
	{"abstract Unix addresses", binaryHeader(0x21, 0x31, padded("\x00a")+padded("\x00b\x00c")), 2, "unix @a", "unix @b\x00c"},
	{"the longest Unix address", binaryHeader(0x21, 0x31, strings.Repeat("x", 108)+padded("")), 2, "unix " + strings.Repeat("x", 108), "unix "},
	{"the proxy itself", binaryHeader(0x20, 0x00, ""), 2, "", ""},
	{"the proxy itself, with addresses", binaryHeader(0x20, 0x11, v4), 2, "", ""},
	{"the proxy itself, with nonsense", binaryHeader(0x20, 0x11, "?"), 2, "", ""},
	{"an unspecified family, with nonsense", binaryHeader(0x21, 0x00, "anything"), 2, "", ""},
	{"values", binaryHeader(0x21, 0x11, v4+"\x01\x00\x02h2\x04\x00\x03xxx\x02\x00\x00\xee\x00\x01!"), 2, "tcp 192.0.2.7:4711", "tcp 192.0.2.1:80"},
	{"a checksum", summed(), 2, "tcp 192.0.2.7:4711", "tcp 192.0.2.1:80"},
	{"the longest header", binaryHeader(0x21, 0x11, v4+"\xee\x0f\xe1"+strings.Repeat("x", 4096-16-12-3)), 2, "tcp 192.0.2.7:4711", "tcp 192.0.2.1:80"},
}

// said returns an address with its network; "" if there is none.
func said(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.Network() + " " + a.String()
}

func TestHeadersThatAreRead(t *testing.T) {
	for _, row := range readable {
		t.Run(row.name, func(t *testing.T) {
			p := []byte(row.header + "GET / HTTP/1.1\r\n\r\n")
			h, n, err := proxyproto.Parse(p)
			require.NoError(t, err)
			clear(p) // nothing of it is kept
			require.Equal(t, len(row.header), n)
			require.Equal(t, row.version, h.Version)
			require.Equal(t, row.source, said(h.Source))
			require.Equal(t, row.destination, said(h.Destination))
		})
	}
}

var malformed = []struct{ name, header string }{
	{"HTTP", "GET / HTTP/1.1\r\n"},
	{"HTTP with a method that begins alike", "PROPFIND / HTTP/1.1\r\n"},
	{"TLS", "\x16\x03\x01"},
	{"another case", "proxy TCP4 192.0.2.7 192.0.2.1 4711 80\r\n"},
	{"no protocol", "PROXY \r\n"},
	{"another protocol", "PROXY UDP4 192.0.2.7 192.0.2.1 4711 80\r\n"},
	{"an end without CR", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\n"},
	{"an end without LF", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\rG"},
	{"a line that is too long", "PROXY UNKNOWN " + strings.Repeat("f", 107-16+1) + "\r\n"},
	{"a line without an end", "PROXY UNKNOWN " + strings.Repeat("f", 107-14)},
	{"two spaces", "PROXY TCP4  192.0.2.7 192.0.2.1 4711 80\r\n"},
	{"a space at the end", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80 \r\n"},
	{"too few words", "PROXY TCP4 192.0.2.7 192.0.2.1 4711\r\n"},
	{"an address of IPv6 in a line for IPv4", "PROXY TCP4 2001:db8::7 192.0.2.1 4711 80\r\n"},
	{"an address of IPv4 in a line for IPv6", "PROXY TCP6 192.0.2.7 2001:db8::1 4711 80\r\n"},
	{"an address with a zone", "PROXY TCP6 fe80::1%eth0 2001:db8::1 4711 80\r\n"},
	{"an octal address", "PROXY TCP4 192.0.2.07 192.0.2.1 4711 80\r\n"},
	{"a name", "PROXY TCP4 localhost 192.0.2.1 4711 80\r\n"},
	{"a port that is too large", "PROXY TCP4 192.0.2.7 192.0.2.1 65536 80\r\n"},
	{"a port with a leading zero", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 080\r\n"},
	{"a port with a sign", "PROXY TCP4 192.0.2.7 192.0.2.1 +4711 80\r\n"},
	{"no port", "PROXY TCP4 192.0.2.7 192.0.2.1  80\r\n"},
	{"another version", binaryHeader(0x31, 0x11, v4)},
	{"another command", binaryHeader(0x22, 0x11, v4)},
	{"UDP", binaryHeader(0x21, 0x12, v4)},
	{"Unix datagrams", binaryHeader(0x21, 0x32, padded("/a")+padded(""))},
	{"another family", binaryHeader(0x21, 0x41, v4)},
	{"another protocol of a family", binaryHeader(0x21, 0x13, v4)},
	{"addresses that are cut off", binaryHeader(0x21, 0x11, v4[1:])},
	{"a header that is too long", signature + "\x21\x11\x0f\xf1"},
	{"a value that is cut off", binaryHeader(0x21, 0x11, v4+"\x01\x00\x03h2")},
	{"a value without a length", binaryHeader(0x21, 0x11, v4+"\x01\x00")},
	{"a wrong checksum", strings.Replace(summed(), "\x02\x00\x01x", "\x02\x00\x01y", 1)},
	{"a checksum of the wrong length", binaryHeader(0x21, 0x11, v4+"\x03\x00\x03xxx")},
	{"two checksums", binaryHeader(0x21, 0x11, v4+"\x03\x00\x04xxxx\x03\x00\x04xxxx")},
}

func TestHeadersThatAreRefused(t *testing.T) {
	for _, row := range malformed {
		t.Run(row.name, func(t *testing.T) {
			h, n, err := proxyproto.Parse([]byte(row.header))
			require.Error(t, err)
			require.NotEqual(t, io.ErrUnexpectedEOF, err)
			require.Empty(t, h)
			require.Zero(t, n)
		})
	}
}

func TestHeadersThatAreSent(t *testing.T) {
	unix := func(network, name string) net.Addr { return &net.UnixAddr{Net: network, Name: name} }
	udp := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}
	for _, row := range []struct {
		name         string
		header       proxyproto.Header
		line, binary string
	}{
		{"IPv4", proxyproto.Header{Source: tcp("192.0.2.7:4711"), Destination: tcp("192.0.2.1:80")},
			"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", binaryHeader(0x21, 0x11, v4)},
		{"IPv6", proxyproto.Header{Source: tcp("[2001:db8::7]:4711"), Destination: tcp("[2001:db8::1]:80")},
			"PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n", binaryHeader(0x21, 0x21, v6)},
		{"one of each", proxyproto.Header{Source: tcp("192.0.2.7:4711"), Destination: tcp("[2001:db8::1]:80")},
			"PROXY TCP6 ::ffff:192.0.2.7 2001:db8::1 4711 80\r\n",
			binaryHeader(0x21, 0x21, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x07"+v6[16:])},
		{"a zone, which means nothing elsewhere", proxyproto.Header{Source: &net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 4711, Zone: "eth0"},
			Destination: tcp("[2001:db8::1]:80")}, "PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n", binaryHeader(0x21, 0x21, v6)},
		{"UDP", proxyproto.Header{Source: udp, Destination: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}},
			"PROXY UNKNOWN\r\n", binaryHeader(0x21, 0x00, "")},
		{"Unix", proxyproto.Header{Source: unix("unix", "/a"), Destination: unix("unix", "@b")},
			"PROXY UNKNOWN\r\n", binaryHeader(0x21, 0x31, padded("/a")+padded("\x00b"))},
		{"a Unix address that is too long", proxyproto.Header{Source: unix("unix", strings.Repeat("x", 109)), Destination: unix("unix", "/b")},
			"PROXY UNKNOWN\r\n", binaryHeader(0x21, 0x00, "")},
		{"two networks", proxyproto.Header{Source: tcp("192.0.2.7:4711"), Destination: unix("unix", "/b")},
			"PROXY UNKNOWN\r\n", binaryHeader(0x21, 0x00, "")},
		{"one address", proxyproto.Header{Source: tcp("192.0.2.7:4711")}, "PROXY UNKNOWN\r\n", binaryHeader(0x21, 0x00, "")},
		{"none", proxyproto.Header{}, "PROXY UNKNOWN\r\n", binaryHeader(0x20, 0x00, "")},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := row.header
			h.Version = 1
			require.Equal(t, "before"+row.line, string(h.Append([]byte("before"))))
			h.Version = 2
			require.Equal(t, "before"+row.binary, string(h.Append([]byte("before"))))
		})
	}
	require.Panics(t, func() { (&proxyproto.Header{}).Append(nil) }, "no version")
}

// FuzzParse tries any bytes: what was decided of the beginning is not changed by what comes after it, and what was read
// is sent and read again alike.
func FuzzParse(f *testing.F) {
	for _, row := range readable {
		f.Add([]byte(row.header))
	}
	for _, row := range malformed {
		f.Add([]byte(row.header))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		h, n, err := proxyproto.Parse(p)
		for i := range p {
			some, m, earlier := proxyproto.Parse(p[:i])
			switch {
			case earlier == io.ErrUnexpectedEOF:
				require.Greater(t, m, i)
				require.LessOrEqual(t, m, 4096)
				require.True(t, err != nil || m <= n, "it asks for a byte behind the header")
			default:
				require.Equal(t, err, earlier)
				require.Equal(t, h, some)
				require.Equal(t, n, m)
			}
		}
		if err != nil {
			return
		}
		require.LessOrEqual(t, n, len(p))
		sent := h.Append(nil)
		again, m, err := proxyproto.Parse(sent)
		require.NoError(t, err)
		require.Equal(t, len(sent), m)
		require.Equal(t, said(h.Source), said(again.Source))
		require.Equal(t, said(h.Destination), said(again.Destination))
	})
}

func TestMain(m *testing.M) { servertest.Main(m) }
