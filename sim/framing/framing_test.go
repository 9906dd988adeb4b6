package framing_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/sim/framing"
)

// wire is a connection on which in has arrived.
type wire struct {
	io.Reader
	bytes.Buffer // what is sent
}

func (w *wire) Read(p []byte) (int, error) { return w.Reader.Read(p) }

func TestReads(t *testing.T) {
	const accepted = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	lines := func(in io.ReadWriter) (string, error) { return (&framing.Lines{Conn: in}).Read() }
	lengths := func(in io.ReadWriter) (string, error) {
		p, err := (&framing.Lengths{Conn: in, Size: 3}).Read()
		return string(p), err
	}
	socket := func(in io.ReadWriter) (string, error) {
		x := &framing.WebSocket{Conn: in}
		if err := x.Open("/"); err != nil {
			return "", err
		}
		_, p, err := x.Read()
		return string(p), err
	}
	for name, x := range map[string]struct {
		read     func(io.ReadWriter) (string, error)
		in, want string // or the error
	}{
		"a line":                       {lines, "ab\r\nc", "ab"},
		"an end within a line":         {lines, "ab", "unexpected EOF"},
		"an end between lines":         {lines, "", "EOF"},
		"a long line":                  {lines, strings.Repeat("a", 64<<10), "buffer full"},
		"a message":                    {lengths, "\x00\x00\x02abc", "ab"},
		"an end between messages":      {lengths, "", "EOF"},
		"an end within a message":      {lengths, "\x00\x00\x02", "unexpected EOF"},
		"a long message":               {lengths, "\x10\x00\x01abc", "a message of 1048577 bytes, where 1048576 are the most"},
		"another answer":               {socket, "HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 403"},
		"fragments and a ping":         {socket, accepted + "\x01\x01a\x89\x01?\x00\x01b\x80\x01c", "abc"},
		"a length of two bytes":        {socket, accepted + "\x82\x7e\x01\x00" + strings.Repeat("a", 256), strings.Repeat("a", 256)},
		"a length of eight bytes":      {socket, accepted + "\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x01a", "a"},
		"too much":                     {socket, accepted + "\x02\x01a\x80\x7f\x00\x00\x00\x00\x00\x10\x00\x00", "a message of 1048576 bytes, where"},
		"a mask":                       {socket, accepted + "\x81\x81....a", "a frame that begins with 0x8181"},
		"a fragment of nothing":        {socket, accepted + "\x80\x01a", "more of none"},
		"a message within another":     {socket, accepted + "\x01\x01a\x81\x01b", "a message within a message"},
		"an end between fragments":     {socket, accepted + "\x01\x01a", "unexpected EOF"},
		"a close":                      {socket, accepted + "\x88\x05\x03\xe9bye", "closed with code 1001 bye"},
		"a close without a code":       {socket, accepted + "\x88\x00", "closed with code 1005"},
		"an end without a close frame": {socket, accepted, "EOF"},
	} {
		in := &wire{Reader: iotest.OneByteReader(strings.NewReader(x.in))}
		got, err := x.read(in)
		if err != nil {
			got = err.Error()
		}
		require.Contains(t, got, x.want, name)
		if strings.Contains(name, "ping") {
			require.Contains(t, in.String(), "\x8a\x81", "a masked pong")
		}
	}
}
