package monitor

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// SendFile implements FileSender. Nothing of the file is queued here: without room the caller waits, see full.
func (k *socket) SendFile(f *os.File, offset int64, n int) (int, error) {
	k.settle()
	if err := k.sendable(); err != nil {
		return 0, err
	}
	if k.queued() > 0 {
		return 0, ErrWouldBlock
	}
	sent, err := k.source.e.os.SendFile(int(k.fd), f, offset, n)
	if sent > 0 {
		k.source.e.counts.Sends++
		k.source.e.counts.Sent += uint64(sent)
		return sent, nil
	}
	err, broken := fileError(f, offset, err)
	switch {
	case broken:
		k.fail(err)
	case err == ErrWouldBlock:
		k.state |= full
	}
	return 0, err
}

// fileError returns what the error of a call that has sent nothing of a file means, and whether it is the connection's. An
// errno does not say whose it is: if the file can be read, it is the connection's.
func fileError(f *os.File, offset int64, err error) (_ error, broken bool) {
	switch {
	case err == nil:
		return io.ErrUnexpectedEOF, false
	case err == syscall.EAGAIN:
		return ErrWouldBlock, false
	case err == syscall.EINVAL || errors.Is(err, errors.ErrUnsupported):
		return errors.ErrUnsupported, false
	}
	if _, wrong := f.ReadAt(make([]byte, 1), offset); wrong != nil && wrong != io.EOF {
		return wrong, false
	}
	return err, true
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
