package listener

import (
	"bytes"
	"io"
)

// Line reads a connection line by line: set Conn and call Read. It remembers how far it has searched, so that a peer
// that sends byte by byte costs O(n). While it waits for the rest of a line, nothing else may consume bytes of the
// connection.
type Line struct {
	Conn *Conn // the connection to read from
	Max  int   // the longest line, including its LF or CRLF, in bytes; 0 means Limits.Read

	searched int
}

// Read returns the next line without its end, LF or CRLF, lent until the turn ends. The last line may have no end;
// after it comes io.EOF. For a line that is too long the error is a [PeerError] with ErrTooLong, and the line stays
// unread. Other errors are as for [Conn.Peek]; pass them to [Next].
func (l *Line) Read() ([]byte, error) {
	most := l.Conn.settings.limits.Read
	if l.Max > 0 {
		most = min(most, l.Max)
	}
	for {
		in, err := l.Conn.Peek(min(l.searched+1, most))
		fresh := in[min(l.searched, len(in)):] // less, once the connection is closed
		if i := bytes.IndexByte(fresh, '\n'); i >= 0 && len(in)-len(fresh)+i < most {
			return l.take(in, len(in)-len(fresh)+i+1), nil
		}
		l.searched = min(len(in), most) // of a line that is too long the end may be there, and does not count
		switch {
		case len(in) >= most:
			return nil, &PeerError{ErrTooLong}
		case err == io.EOF && len(in) > 0:
			return l.take(in, len(in)), nil
		case err != nil:
			return nil, err
		}
	}
}

// take discards n bytes and returns them without the end of line.
func (l *Line) take(in []byte, n int) []byte {
	l.searched = 0
	l.Conn.Discard(n)
	line := bytes.TrimSuffix(bytes.TrimSuffix(in[:n], []byte("\n")), []byte("\r"))
	return line[:len(line):len(line)] // an append must not write over the next line
}
