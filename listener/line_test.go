package listener_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// parts is a task that reads lines or frames until an error, which it notes at their end.
func parts(l *servertest.Stepped, read func() ([]byte, error)) (*outcome, *[]string) {
	var got []string
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		for {
			text, err := read()
			if err == nil {
				require.Equal(l.T, len(text), cap(text), "an append must not reach the next one")
				got = append(got, string(text))
				continue
			}
			if _, blocked := err.(act.Blocked); !blocked {
				got = append(got, err.Error())
			}
			return listener.Next(t, err)
		}
	}))
	return o, &got
}

func TestLine(t *testing.T) {
	const tooLong = "listener: more bytes at once than the limit allows"
	for name, row := range map[string]struct {
		in   string
		max  int
		read int
		want []string
	}{
		"nothing":                       {want: []string{"EOF"}},
		"LF":                            {in: "a\nbc\n", want: []string{"a", "bc", "EOF"}},
		"CRLF":                          {in: "a\r\nbc\r\n", want: []string{"a", "bc", "EOF"}},
		"both":                          {in: "a\nbc\r\nd\n", want: []string{"a", "bc", "d", "EOF"}},
		"empty lines":                   {in: "\n\r\n\n", want: []string{"", "", "", "EOF"}},
		"a CR inside":                   {in: "a\rb\n\r\r\n", want: []string{"a\rb", "\r", "EOF"}},
		"the last without an end":       {in: "a\nlast", want: []string{"a", "last", "EOF"}},
		"just as long as it may be":     {in: "123456789\n", max: 10, want: []string{"123456789", "EOF"}},
		"a byte too long":               {in: "1234567890\n", max: 10, want: []string{tooLong}},
		"too long without an end":       {in: "12345678901234567890", max: 10, want: []string{tooLong}},
		"too long behind a good one":    {in: "ok\n12345678901\nok\n", max: 10, want: []string{"ok", tooLong}},
		"as long as Limits.Read":        {in: strings.Repeat("x", 99) + "\n", read: 100, want: []string{strings.Repeat("x", 99), "EOF"}},
		"longer than Limits.Read":       {in: strings.Repeat("x", 100) + "\n", read: 100, want: []string{tooLong}},
		"Max beyond Limits.Read":        {in: strings.Repeat("x", 100) + "\n", read: 100, max: 1000, want: []string{tooLong}},
		"more lines than are received":  {in: strings.Repeat("line\n", 50), read: 7, want: append(repeated("line", 50), "EOF")},
		"longer than one receive takes": {in: strings.Repeat("x", 200_000) + "\n", read: 1 << 20, want: []string{strings.Repeat("x", 200_000), "EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			inPieces(t, row.in, row.read, row.want, func(c *listener.Conn) func() ([]byte, error) {
				return (&listener.Line{Conn: c, Max: row.max}).Read
			})
		})
	}
}

// inPieces requires what a reader gets of bytes that come in pieces, and of their end.
func inPieces(t *testing.T, in string, limit int, want []string, reader func(*listener.Conn) func() ([]byte, error)) {
	t.Helper()
	for _, piece := range []int{1, 3, 1 << 20} {
		if len(in)/piece > 1000 {
			continue // TestLineByLineAByteAtATime has those
		}
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("tcp", listener.Limits{Read: limit})
		o, got := parts(l, reader(c))
		go func() {
			for rest := in; rest != ""; {
				n := min(piece, len(rest))
				_, _ = io.WriteString(peer, rest[:n])
				rest = rest[n:]
			}
			_ = peer.(interface{ CloseWrite() error }).CloseWrite()
		}()
		o.over(l)
		c.Abort()
		require.Equal(t, want, *got, "in pieces of %d", piece)
	}
}

func repeated(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

func TestALineThatIsTooLongStaysUnread(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "1234567890\nnext\n")
	readable(l, c, 16)
	line := &listener.Line{Conn: c, Max: 10}
	l.OS.Forget()
	for range 3 {
		l.Turn(func(*act.Task) {
			_, err := line.Read()
			require.Equal(t, &listener.PeerError{Err: listener.ErrTooLong}, err)
		})
	}
	require.Equal(t, 16, c.Buffered())
	require.Zero(t, l.OS.Count("receive"), "nor is more received")
}

// What was broken: it panicked.
func TestALineOfAConnectionThatWasClosedInBetween(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	servertest.Send(t, peer, "half a l")
	line := &listener.Line{Conn: c}
	l.Until("half a line", func() bool {
		l.Turn(func(*act.Task) {
			_, err := line.Read()
			require.Implements(t, (*act.Blocked)(nil), err)
		})
		return c.Buffered() == 8
	})
	c.Abort()
	l.Turn(func(*act.Task) {
		_, err := line.Read()
		require.ErrorContains(t, err, "closed")
	})
}

// What was searched of one line says nothing about the next, which may be shorter.
func TestAShortLineBehindALongOneIsFoundAtOnce(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	line := &listener.Line{Conn: c}
	servertest.Send(t, peer, "the first half of a long line")
	readable(l, c, 29)
	l.Turn(func(*act.Task) {
		_, err := line.Read()
		require.Implements(t, (*act.Blocked)(nil), err)
	})
	servertest.Send(t, peer, ", and the second\nshort\n")
	readable(l, c, 52)
	l.Turn(func(*act.Task) {
		for _, want := range []string{"the first half of a long line, and the second", "short"} {
			got, err := line.Read()
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
	})
}
