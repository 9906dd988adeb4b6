package http1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decode takes a body in pieces of so many bytes, and returns the data and what was not taken.
func decode(body string, piece int) (data, rest string, ended bool, err error) {
	var c Chunks
	var in []byte
	for body != "" || len(in) > 0 {
		n := min(piece, len(body))
		in, body = append(in, body[:n]...), body[n:]
		for {
			taken, part, over, err := c.Next(in)
			data += string(part)
			in = in[taken:]
			if err != nil || over {
				return data, string(in) + body, over, err
			}
			if taken == 0 || len(in) == 0 {
				break
			}
		}
		if body == "" {
			break
		}
	}
	return data, string(in), false, nil
}

// validChunks are bodies and their data; the fuzzer begins with them.
var validChunks = map[string]string{
	"0\r\n\r\n":               "",
	"5\r\nhello\r\n0\r\n\r\n": "hello",
	"005\r\nhello\r\n6\r\n world\r\n0\r\n\r\n":                         "hello world",
	"A\r\n0123456789\r\n000\r\n\r\n":                                   "0123456789",
	"a;b=\"c;d\"\r\n0123456789\r\n0;x\r\n\r\n":                         "0123456789",
	"1 \t;a\r\nx\r\n0\r\n\r\n":                                         "x",
	"1;a\t; b = c ;d= \"\\\"\t \xe9\" ;e=\"\";f\r\nx\r\n0;a=b\r\n\r\n": "x",
	"1\r\nx\r\n0\r\nChecksum: y\r\nZ: \r\n\r\n":                        "x",
	"3\r\n\r\n\r\r\n0\r\n\r\n":                                         "\r\n\r",
}

func TestChunks(t *testing.T) {
	for body, want := range validChunks {
		for piece := 1; piece <= len(body)+8; piece++ {
			data, rest, ended, err := decode(body+"GET / HT", piece)
			require.NoError(t, err, "%q by %d", body, piece)
			require.True(t, ended, "%q by %d", body, piece)
			require.Equal(t, want, data, "%q by %d", body, piece)
			require.Equal(t, "GET / HT", rest)
		}
		for n := range len(body) {
			_, _, ended, err := decode(body[:n], 3)
			require.NoError(t, err)
			require.False(t, ended, "%q is not the whole of %q", body[:n], body)
		}
	}
}

// invalidChunks are bodies by why they are refused.
var invalidChunks = map[error][]string{
	errChunkSize: {"\r\n", "1 \r\n", "1\t\r\n", "8000000000000000\r\n", "10000000000000001\r\n", "g\r\n", "-1\r\n", "0x1\r\n", " 1\r\n",
		";a\r\n", "1_0\r\n", "1,\r\n", "\"1\"\r\n", "1 1\r\n", "1\nx", "1\x00\r\n", "1x\r\n"},
	errChunkEnd: {"1\r\nxy", "1\r\nx\rx", "1\rx", "1\r\r\n", "1\r\nx\n0\r\n", "1\r\nx0\r\n", "2\r\nx\r\n0", "1\r\nx \r\n"},
	errExtension: {"1;a\nb\r\n", "1;\r\n", "1; \r\n", "1;;a\r\n", "1;=a\r\n", "1;a b\r\n", "1;a \r\n", "1;(\r\n",
		"1;\"a\"\r\n", "1;a=\r\n", "1;a= \r\n", "1;a=;b\r\n", "1;a=b=c\r\n", "1;a=b c\r\n", "1;a=b \r\n",
		"1;a=b\"c\"\r\n", "1;a=\"b\r\n", "1;a=\"b\\\"\r\n", "1;a=\"b\\\r\n", "1;a=\"b\"c\r\n", "1;a=\"b\" \r\n",
		"1;a=\"\x7f\"\r\n", "1;a\x00\r\n", "0;a=\"\n\"\r\n"},
	errChunkLine: {"1;" + strings.Repeat("a", maxSizeLine), strings.Repeat("0", maxSizeLine) + "1\r\n",
		strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\nx\r\n", maxExtensions/200+1)},
	errForbidden: {"0\r\nContent-Length: 1\r\n\r\n", "0\r\nTransfer-Encoding: chunked\r\n\r\n", "0\r\nHost: b\r\n\r\n",
		"0\r\nA: b\r\nCONTENT-LENGTH: 0\r\n\r\n"},
	errName:     {"0\r\nX : a\r\n\r\n", "0\r\n: 1\r\n\r\n"},
	errLineEnd:  {"0\r\nX: a\n\r\n"},
	errControl:  {"0\r\nX: a\rZ: b\r\n\r\n", "0\r\nX: \x00\r\n\r\n"},
	ErrTrailers: {"0\r\nX: " + strings.Repeat("a", maxTrailers) + "\r\n"},
}

func TestChunksThatAreRefused(t *testing.T) {
	for want, bodies := range invalidChunks {
		for _, body := range bodies {
			for _, piece := range []int{1, 7, len(body)} {
				_, _, ended, err := decode(body, piece)
				require.Equal(t, want, err, "%.60q by %d", body, piece)
				require.False(t, ended)
			}
		}
	}
}

// FuzzChunks: the result does not depend on the pieces.
func FuzzChunks(f *testing.F) {
	for body := range validChunks {
		f.Add(body+"GET", uint(3))
	}
	for _, bodies := range invalidChunks {
		for _, body := range bodies {
			f.Add(body, uint(2))
		}
	}
	f.Fuzz(func(t *testing.T, body string, piece uint) {
		data, rest, ended, err := decode(body, max(1, len(body)))
		again, left, over, refused := decode(body, 1+int(piece%16))
		require.Equal(t, err, refused, "%q", body)
		if err == nil {
			require.Equal(t, data, again)
			require.Equal(t, ended, over)
			if ended {
				require.Equal(t, rest, left)
			}
		}
	})
}
