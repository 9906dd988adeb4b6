package deflate

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The payloads of RFC 7692 7.2.3, and others that say Hello.
var hello = []struct{ name, packed string }{
	{"7.2.3.1 one block", "\xf2\x48\xcd\xc9\xc9\x07\x00"},
	{"7.2.3.3 a block without compression", "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"},
	{"7.2.3.4 a final block", "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"},
	{"7.2.3.5 two blocks", "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"},
	{"two final blocks", "\xf3\x48\x05\x00\xcb\xc9\xc9\x07\x00\x00"},
	{"a final block, and nothing behind it", "\xf3\x48\xcd\xc9\xc9\x07\x00"},
	{"empty blocks around it", "\x00\x00\x00\xff\xff\x02\x00\x00\x00\xff\xff\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff\x00"},
	{"a final block without compression", "\x01\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"},
}

func TestHello(t *testing.T) {
	for _, row := range hello {
		t.Run(row.name, func(t *testing.T) {
			p, err := New(Terms{}).Inflate([]byte("before "), []byte(row.packed), 5)
			require.NoError(t, err)
			require.Equal(t, "before Hello", string(p))
			_, err = New(Terms{}).Inflate(nil, []byte(row.packed), 4)
			require.Equal(t, ErrSize, err)
		})
	}
	p, err := New(Terms{}).Inflate(nil, []byte{0}, 0) // 7.2.3.6
	require.NoError(t, err)
	require.Empty(t, p)
	require.Equal(t, "\x00", string(Compress(nil, nil, nil)))
}

func TestMalformed(t *testing.T) {
	for name, packed := range map[string]string{
		"nothing":               "",
		"an unknown block":      "\x06",
		"a wrong length":        "\x00\x05\x00\xfa\xfe\x48\x65\x6c\x6c\x6f\x00",
		"half of a block":       "\xf2\x48\xcd",
		"half a stored block":   "\x00\x06\x00\xf9\xff\x48",
		"it takes what follows": "\x00\x09\x00\xf6\xff",
		"it refers too far":     "\xf2\x00\x11\x00\x00",
		"the tail, too":         "\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff",
		"text":                  "Hello",
		"only final blocks":     strings.Repeat("\x03\x00", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Terms{Receives: true})
			p, err := c.Inflate([]byte("a"), []byte(packed), 1<<20)
			require.Equal(t, ErrData, err)
			require.Equal(t, "a", string(p))
			require.Empty(t, c.received)
		})
	}
}

// texts are of many sizes and kinds, for both directions.
func texts() (all [][]byte) {
	all = append(all, nil, []byte("a"), []byte("Hello"), bytes.Repeat([]byte("a"), 20), noise(11), noise(12), noise(13), noise(20000), noise(100_000))
	for _, n := range []int{100, 1000, 5000, 8191, 8192, 8193, 24575, 24576, 32767, 32768, 32769, 70_000, 300_000} {
		all = append(all, lines(n), bytes.Repeat([]byte("x"), n))
	}
	return append(all, append(lines(40_000), noise(40_000)...), append(noise(40_000), lines(40_000)...))
}

// lines is a text of n bytes that can be compressed.
func lines(n int) []byte {
	var b bytes.Buffer
	for r := rand.New(rand.NewPCG(uint64(n), 1)); b.Len() < n; {
		fmt.Fprintf(&b, `{"id":%d,"user":"user%d","room":"lobby","type":"message","text":"%s"},`, r.IntN(1e6), r.IntN(100),
			strings.Repeat("and so on ", r.IntN(9)))
	}
	return b.Bytes()[:n]
}

func noise(n int) []byte {
	r, p := rand.New(rand.NewPCG(1, uint64(n))), make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// What one side compresses the other inflates, message after message, with context takeover and without.
func TestThereAndBack(t *testing.T) {
	for _, takeover := range []bool{false, true} {
		here, there := New(Terms{Sends: takeover}), New(Terms{Receives: takeover})
		var space []byte
		for i, p := range append(texts(), texts()...) {
			packed, ok := here.Compress(space[:0], p)
			space = packed
			if !ok {
				continue
			}
			require.Less(t, len(packed), len(p))
			got, err := there.Inflate(nil, packed, int64(len(p)))
			require.NoError(t, err, i)
			require.True(t, bytes.Equal(p, got), i)
			require.LessOrEqual(t, cap(here.sent), sent)
			require.LessOrEqual(t, cap(there.received), received)
		}
		require.Equal(t, takeover, here.sent != nil)
	}
}

// The twin is a stream of compress/flate, as many peers have one for each connection.
func TestAPeerWithAStream(t *testing.T) {
	for _, level := range []int{-2, 0, 1, 5, 9} {
		var wire bytes.Buffer
		stream, err := flate.NewWriter(&wire, level)
		require.NoError(t, err)
		there := New(Terms{Receives: true})
		for i, p := range append(texts(), lines(1000), lines(1000)) {
			wire.Reset()
			_, err := stream.Write(p)
			require.NoError(t, err)
			require.NoError(t, stream.Flush())
			packed := bytes.TrimSuffix(wire.Bytes(), []byte(tail))
			require.Len(t, packed, wire.Len()-len(tail))
			require.LessOrEqual(t, int64(len(packed)), Packed(int64(len(p))))
			got, err := there.Inflate(nil, packed, math.MaxInt64)
			require.NoError(t, err, "level %d, text %d", level, i)
			require.True(t, bytes.Equal(p, got))
		}
	}
}

// FuzzInflate inflates anything, after anything: nothing goes wrong, and there are no more bytes than there may be. What
// compress/flate makes of it is the same.
func FuzzInflate(f *testing.F) {
	for _, row := range hello {
		f.Add([]byte(row.packed), []byte("Hello"), uint16(10))
	}
	f.Add([]byte("\xf2\x00\x11\x00\x00"), []byte("Hello"), uint16(5))
	f.Add([]byte("\x03\x00\x03\x00\x00"), []byte(""), uint16(5))
	f.Add(Compress(nil, lines(2000), nil), []byte("x"), uint16(2000))
	f.Add(Compress(nil, make([]byte, 1<<20), nil), []byte(""), uint16(1000)) // it takes no more memory than it may
	f.Fuzz(func(t *testing.T, packed, window []byte, most uint16) {
		c := Codec{terms: Terms{Receives: true}, received: slide(nil, window, received)}
		p, err := c.Inflate(nil, packed, int64(most))
		require.LessOrEqual(t, len(p), int(most))
		require.LessOrEqual(t, cap(p), 2*int(most)+64)
		if err == nil {
			again, err := (&Codec{received: window[max(0, len(window)-received):]}).Inflate(make([]byte, 3, 100), packed, math.MaxInt64)
			require.NoError(t, err)
			require.Equal(t, "\x00\x00\x00"+string(p), string(again))
		}
		in, all := bytes.NewReader([]byte(string(packed)+end)), bytes.Buffer{}
		n, failed := all.ReadFrom(flate.NewReaderDict(in, window))
		switch {
		case failed != nil:
		case err == nil: // one stream, or the first of several
			require.Equal(t, all.String(), string(p[:n]))
		case in.Len() == 0: // one stream
			require.Equal(t, ErrSize, err)
			require.Greater(t, n, int64(most))
		}
	})
}
