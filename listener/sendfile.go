package listener

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/daimon-go/daimon/monitor"
)

const (
	fileCall  = 512 << 10 // the most that SendFile sends, so that a turn does not serve one download alone
	filePiece = 48 << 10  // the most that is read at a time of a file that sendfile(2) cannot send: three TLS records
)

// SendFile sends n bytes of f from offset on, after all bytes written before, and returns how many it sent. One call
// sends at most 512 KiB: with fewer than n bytes and no error, call it again. Otherwise the error says why there are
// fewer. It is an act.Blocked, woken when there is room again, or when the bytes written before are sent;
// io.ErrUnexpectedEOF, if the file is shorter; os.ErrDeadlineExceeded, by the deadline of Write; net.ErrClosed; an
// error of the connection, possibly about bytes that were written earlier; or an *fs.PathError of the file, which
// leaves the connection as it was.
//
// f is a regular file. Its own position is neither used nor moved, and it must stay open until the call has returned.
// The kernel takes the bytes by reference where it can: if the file is changed while bytes of it are on their way, it
// is undefined which ones the peer gets.
//
// The bytes go from the kernel's cache to the socket without passing through the program (sendfile(2) on Linux, Darwin
// and FreeBSD). Elsewhere, with files that cannot be sent that way, and over streams that change the bytes,
// they are read and given to Write: up to Limits.High of them are then queued. Either way a file that is not in the
// cache holds up the scheduler for as long as the disk takes.
func (c *Conn) SendFile(f *os.File, offset, n int64) (int64, error) {
	if offset < 0 || n < 0 {
		panic("listener: SendFile from a negative offset, or of a negative number of bytes")
	}
	if c.stream == nil {
		return 0, net.ErrClosed
	}
	if n == 0 {
		return 0, nil
	}
	n = min(n, fileCall)
	stream, ok := As[monitor.FileSender](c)
	if !ok {
		return c.copyFile(f, offset, n)
	}
	if err := c.Sent(); err != nil {
		return 0, err
	}
	if b := c.buffers; b != nil && b.passed(b.write) {
		return 0, os.ErrDeadlineExceeded
	}
	sent := int64(0)
	for sent < n { // until it is refused, as edges want it
		k, err := stream.SendFile(f, offset+sent, int(n-sent))
		sent += int64(k)
		switch err {
		case nil:
		case monitor.ErrWouldBlock:
			return sent, (*blockedEmptying)(c)
		case errors.ErrUnsupported:
			copied, err := c.copyFile(f, offset+sent, n-sent)
			return sent + copied, err
		default:
			return sent, err
		}
	}
	return sent, nil
}

// copyFile reads no more than there is room for: nothing that was read is thrown away.
func (c *Conn) copyFile(f *os.File, offset, n int64) (int64, error) {
	sent := int64(0)
	for sent < n {
		room := c.Room()
		if room == 0 {
			err := c.send() // gathered bytes may take all the room
			if err == nil {
				_, err = c.Write(nil)
			}
			if err != nil {
				return sent, err
			}
			continue
		}
		h := c.settings.cache
		if h.file == nil {
			h.file = make([]byte, filePiece)
		}
		p := h.file[:min(int64(room), filePiece, n-sent)]
		read, missing := f.ReadAt(p, offset+sent)
		written, err := c.Write(p[:read])
		sent += int64(written)
		switch {
		case err != nil:
			return sent, err
		case missing == io.EOF:
			return sent, io.ErrUnexpectedEOF
		case missing != nil:
			return sent, missing
		}
	}
	return sent, nil
}
