package listener_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// An answer to each message, both with the length in two bytes.
func ExampleFrame() {
	clerk := func(c *listener.Conn) act.Action {
		frames := listener.Frame{Conn: c, Length: listener.Uint16, Max: 1000}
		return act.Func(func(t *act.Task) act.Directive {
			m, err := frames.Read()
			if err != nil {
				return listener.Next(t, err)
			}
			answer, err := listener.Uint16.Append(nil, []byte(strings.ToUpper(string(m))))
			if err == nil {
				_, err = c.Write(answer)
			}
			return listener.Next(t, err)
		})
	}
	converse(clerk, func(client net.Conn) {
		fmt.Fprint(client, "\x00\x05to be\x00\x09or not to")
		_ = client.(*net.TCPConn).CloseWrite()
		answers, _ := io.ReadAll(client)
		fmt.Printf("%q", answers)
	})
	// Output: "\x00\x05TO BE\x00\tOR NOT TO"
}

func TestFrame(t *testing.T) {
	const tooLong, broken = "listener: more bytes at once than the limit allows", "unexpected EOF"
	long := strings.Repeat("x", 300)
	for name, row := range map[string]struct {
		in     string
		length listener.Length
		max    int
		read   int
		want   []string
	}{
		"nothing":                {want: []string{"EOF"}},
		"32 bits":                {in: "\x00\x00\x00\x01a\x00\x00\x00\x02bc", want: []string{"a", "bc", "EOF"}},
		"16 bits":                {in: "\x01\x2C" + long + "\x00\x00", length: listener.Uint16, want: []string{long, "", "EOF"}},
		"a varint":               {in: "\x00\x01a\xAC\x02" + long, length: listener.Uvarint, want: []string{"", "a", long, "EOF"}},
		"a varint of 70 bits":    {in: strings.Repeat("\xFF", 9) + "\x7F", length: listener.Uvarint, want: []string{tooLong}},
		"a varint of 64 bits":    {in: strings.Repeat("\xFF", 9) + "\x01", length: listener.Uvarint, want: []string{tooLong}},
		"a varint without end":   {in: "\x80\x80", length: listener.Uvarint, want: []string{broken}},
		"an end in the length":   {in: "\x00\x00\x00", want: []string{broken}},
		"an end in the message":  {in: "\x02bc\x03de", length: listener.Uvarint, want: []string{"bc", broken}},
		"as long as Max":         {in: "\x03abc\x04", length: listener.Uvarint, max: 3, want: []string{"abc", tooLong}},
		"as long as Limits.Read": {in: "\x09123456789\x0A", length: listener.Uvarint, read: 10, want: []string{"123456789", tooLong}},
		"Max beyond Limits.Read": {in: "\xFF\xFF\xFF\xFF", read: 10, max: 1 << 30, want: []string{tooLong}},
		"less than a length":     {in: "\x00\x00\x00\x00", read: 3, want: []string{tooLong}},
	} {
		t.Run(name, func(t *testing.T) {
			inPieces(t, row.in, row.read, row.want, func(c *listener.Conn) func() ([]byte, error) {
				return (&listener.Frame{Conn: c, Length: row.length, Max: row.max}).Read
			})
			made := []byte{}
			for _, m := range row.want[:len(row.want)-1] {
				var err error
				made, err = row.length.Append(made, []byte(m))
				require.NoError(t, err)
			}
			require.True(t, strings.HasPrefix(row.in, string(made)), "what Append makes")
		})
	}
	made, err := listener.Uint16.Append(nil, make([]byte, 1<<16-1))
	require.NoError(t, err)
	again, err := listener.Uint16.Append(made, make([]byte, 1<<16))
	require.Equal(t, listener.ErrTooLong, err)
	require.Equal(t, made, again)
}
