package monitor

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// SendFile implements FileSender. Nothing of the file is queued here: without room the caller waits, see full.
func (k *socket) SendFile(f *os.File, offset int64, n int) (int, error) {
	if err := k.sendable(); err != nil {
		return 0, err
	}
	if k.queued() > 0 {
		return 0, ErrWouldBlock
	}
	sent, err := k.source.e.os.SendFile(int(k.fd), f, offset, n)
	switch {
	case sent > 0:
		k.source.e.counts.Sends++
		k.source.e.counts.Sent += uint64(sent)
		return sent, nil
	case err == nil:
		return 0, io.ErrUnexpectedEOF
	case err == syscall.EAGAIN:
		k.state |= full
		return 0, ErrWouldBlock
	case err == syscall.EINVAL || errors.Is(err, errors.ErrUnsupported):
		return 0, errors.ErrUnsupported
	}
	return 0, k.blame(f, offset, err)
}

// blame finds out whether the file or the connection is at fault, which an errno does not say: if the file can be read,
// it is the connection.
func (k *socket) blame(f *os.File, offset int64, err error) error {
	if wrong := unreadable(f, offset); wrong != nil {
		return wrong
	}
	k.fail(err)
	return err
}

func unreadable(f *os.File, offset int64) error {
	if _, err := f.ReadAt(make([]byte, 1), offset); err != io.EOF {
		return err
	}
	return nil
}

// room continues work that had to wait for room.
func (k *socket) room() {
	k.state &^= full
	if k.out != nil && k.out.lent != nil {
		k.out.lent.rooms.Add(1)
	}
	switch {
	case k.queued() > 0:
		k.flush()
	case k.out != nil:
		k.out.writers.Wake(0)
		k.calm()
	}
}
