package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// RFC 6455 5.7 has these as examples, but for the masks of some.
var headers = []struct {
	name string
	wire string
	h    Header
}{
	{"5.7 an unmasked text", "\x81\x05", Header{Opcode: Text, Final: true, Length: 5}},
	{"5.7 a masked text", "\x81\x85\x37\xfa\x21\x3d", Header{Opcode: Text, Final: true, Length: 5, Masked: true, Key: [4]byte{0x37, 0xfa, 0x21, 0x3d}}},
	{"5.7 a first fragment", "\x01\x03", Header{Opcode: Text, Length: 3}},
	{"5.7 a last fragment", "\x80\x02", Header{Opcode: Continuation, Final: true, Length: 2}},
	{"5.4 a fragment in the middle", "\x00\x00", Header{Opcode: Continuation}},
	{"5.7 a ping", "\x89\x05", Header{Opcode: Ping, Final: true, Length: 5}},
	{"5.7 a pong", "\x8a\x85\x37\xfa\x21\x3d", Header{Opcode: Pong, Final: true, Length: 5, Masked: true, Key: [4]byte{0x37, 0xfa, 0x21, 0x3d}}},
	{"5.5 the longest control frame", "\x88\x7d", Header{Opcode: Close, Final: true, Length: 125}},
	{"5.7 256 bytes", "\x82\x7e\x01\x00", Header{Opcode: Binary, Final: true, Length: 256}},
	{"5.7 64 KiB", "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", Header{Opcode: Binary, Final: true, Length: 65536}},
	{"5.2 the longest of one byte", "\x82\x7d", Header{Opcode: Binary, Final: true, Length: 125}},
	{"5.2 the shortest of two bytes", "\x82\x7e\x00\x7e", Header{Opcode: Binary, Final: true, Length: 126}},
	{"5.2 the longest of two bytes", "\x82\xfe\xff\xff\x01\x02\x03\x04", Header{Opcode: Binary, Final: true, Length: 65535, Masked: true, Key: [4]byte{1, 2, 3, 4}}},
	{"5.2 the longest", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04", Header{Opcode: Binary, Final: true, Length: 1<<63 - 1, Masked: true, Key: [4]byte{1, 2, 3, 4}}},
	{"RFC 7692 7.2.3.1 a compressed text", "\xc1\x07", Header{Opcode: Text, Final: true, Compressed: true, Length: 7}},
	{"RFC 7692 7.2.3.1 its first fragment", "\x41\x03", Header{Opcode: Text, Compressed: true, Length: 3}},
}

func TestHeaders(t *testing.T) {
	for _, row := range headers {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.wire, string(row.h.Append(nil)))
			require.LessOrEqual(t, len(row.wire), MaxHeader)
			for i := range row.wire {
				_, n, err := Parse([]byte(row.wire[:i]), row.h.Masked, row.h.Compressed)
				require.NoError(t, err)
				require.Zero(t, n, "%d bytes of it", i)
			}
			for _, deflate := range []bool{row.h.Compressed, true} {
				h, n, err := Parse([]byte(row.wire+"more"), row.h.Masked, deflate)
				require.NoError(t, err)
				require.Equal(t, len(row.wire), n)
				require.Equal(t, row.h, h)
			}
		})
	}
}

// Each is refused by the byte that is at the given place, and not before.
func TestHeadersThatAreRefused(t *testing.T) {
	type row struct {
		name, wire string
		masked     bool
		at         int
		err        Error
	}
	rows := []row{
		{"5.2 RSV2", "\xa1\x80", true, 0, ErrReserved},
		{"5.2 RSV3", "\x91\x80", true, 0, ErrReserved},
		{"5.2 RSV1 of a control frame", "\xc9\x80", true, 0, ErrReserved},
		{"RFC 7692 6.1 RSV1 of a continuation", "\xc0\x80", true, 0, ErrReserved},
		{"5.1 a client without a mask", "\x81\x05", true, 1, ErrUnmasked},
		{"5.1 a server with a mask", "\x81\x85", false, 1, ErrMasked},
		{"5.5 a long ping", "\x89\xfe\x00\x7e", true, 1, ErrLong},
		{"5.5 a very long close", "\x88\xff", true, 1, ErrLong},
		{"5.5 a long pong", "\x8a\x7e", false, 1, ErrLong},
		{"5.2 125 in two bytes", "\x82\x7e\x00\x7d", false, 3, ErrLength},
		{"5.2 125 in eight bytes", "\x82\xff\x00\x00\x00\x00\x00\x00\x00\x7d", true, 9, ErrLength},
		{"5.2 65535 in eight bytes", "\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", false, 9, ErrLength},
		{"5.2 64 bits", "\x82\xff\x80\x00\x00\x00\x00\x01\x00\x00", true, 9, ErrNegative},
	}
	for _, o := range []Opcode{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		rows = append(rows, row{fmt.Sprint("5.2 opcode ", o), string([]byte{0x80 | byte(o), 0x80}), true, 0, ErrOpcode})
	}
	for _, o := range []Opcode{Close, Ping, Pong} {
		rows = append(rows, row{fmt.Sprint("5.4 a fragment of opcode ", o), string([]byte{byte(o), 0x80}), true, 0, ErrFragmented})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for i := range len(row.wire) + 1 {
				for _, deflate := range []bool{false, true} {
					_, n, err := Parse([]byte(row.wire[:i]), row.masked, deflate)
					require.Zero(t, n)
					if i <= row.at {
						require.NoError(t, err, "%d bytes of it", i)
					} else {
						require.Equal(t, row.err, err, "%d bytes of it", i)
					}
				}
			}
		})
	}
	for _, wire := range []string{"\xc1", "\x42\x80"} { // RFC 7692 6: what nobody has agreed upon
		_, n, err := Parse([]byte(wire), true, false)
		require.Zero(t, n)
		require.Equal(t, ErrReserved, err)
	}
}

// RFC 6455 5.3, at each length and offset up to some words, in place and not.
func TestMask(t *testing.T) {
	require.Equal(t, "Hello", func() string { // 5.7
		p := []byte("\x7f\x9f\x4d\x51\x58")
		Mask(p, p, [4]byte{0x37, 0xfa, 0x21, 0x3d}, 0)
		return string(p)
	}())
	key := [4]byte{0x12, 0x34, 0x56, 0x78}
	for n := range 40 {
		for at := range int64(9) {
			src, want := make([]byte, n), make([]byte, n)
			for i := range src {
				src[i] = byte(i * 7)
				want[i] = src[i] ^ key[(at+int64(i))%4]
			}
			dst := bytes.Repeat([]byte{0xEE}, n+1)
			Mask(dst, src, key, at)
			require.Equal(t, append(bytes.Clone(want), 0xEE), dst)
			Mask(src, src, key, at)
			require.Equal(t, want, src)
		}
	}
}

func TestCloseFrames(t *testing.T) {
	for code := range 1 << 16 {
		valid := code >= 3000 && code < 5000 // RFC 6455 7.4.2
		switch code {
		case 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011: // 7.4.1
			valid = true
		case 1012, 1013, 1014: // the registry of 11.7
			valid = true
		}
		require.Equal(t, valid, ValidCode(code), code)
		got, reason, err := ParseClose(binary.BigEndian.AppendUint16(nil, uint16(code)))
		if !valid {
			require.Equal(t, ErrCode, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, code, got)
		require.Empty(t, reason)
	}
	for p, want := range map[string]error{"": nil, "\x03": ErrHalfCode, "\x03\xe8bye": nil, "\x03\xe8\xff": ErrText, "\x03\xe8\xe2\x82": ErrText} {
		code, reason, err := ParseClose([]byte(p))
		require.Equal(t, want, err, "%q", p)
		if err == nil {
			require.Equal(t, p, string(AppendClose(nil, code, string(reason))))
		}
	}
	require.Len(t, AppendClose(nil, Normal, strings.Repeat("x", 200)), MaxControl)
	p := AppendClose([]byte("before"), Normal, strings.Repeat("€", 50))
	require.Len(t, p, len("before")+2+41*3)
	require.True(t, utf8.Valid(p[8:]))
}

// viable reports whether p is UTF-8 or can become it.
func viable(p []byte) bool {
	for len(p) > 0 && utf8.FullRune(p) {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 {
			return false
		}
		p = p[n:]
	}
	return true
}

// texts are of RFC 3629, with what its section 4 leaves out.
var texts = []string{
	"", "Hello", "κόσμε", "€", "𝄞", "a\u07ff\u0800\uffff\U00010000\U0010ffffz", "\ufffd\ufeff",
	"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
	"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xf0\x9d\x84", "\xe2\x28\xa1", "\xf0\x9d\x28\x9e",
	"κόσμε\xed\xa0\x80edited", "12345678€12345678\x8012345678",
}

// Each text, after and before ASCII of each length, whole, in two pieces, and byte by byte: it fails with the first byte
// that cannot become valid.
func TestUTF8(t *testing.T) {
	for _, text := range texts {
		for pad := range 10 {
			checkText(t, []byte(strings.Repeat("x", pad)+text+strings.Repeat("y", 9-pad)))
		}
		checkText(t, []byte(text))
	}
	for a := range 256 { // all of two bytes, and all that begins a character of three and four
		for b := range 256 {
			checkText(t, []byte{byte(a), byte(b)})
			checkText(t, []byte{byte(a), byte(b), 0x80})
			checkText(t, []byte{byte(a), byte(b), 0x80, 0xBF})
		}
	}
}

func checkText(t *testing.T, p []byte) {
	t.Helper()
	var single UTF8
	good := true
	for i := range p {
		good = good && single.Write(p[i:i+1])
		if good != viable(p[:i+1]) {
			require.Fail(t, "byte by byte", "%q at %d", p, i)
		}
	}
	for i := range len(p) + 1 {
		var u UTF8
		same := u.Write(p[:i]) && u.Write(p[i:])
		if same != good || good && u.Over() != utf8.Valid(p) {
			require.Fail(t, "in two pieces", "%q at %d", p, i)
		}
	}
}
