//go:build netbsd || openbsd

package netpoll

import "golang.org/x/sys/unix"

// interrupter ends a wait by a byte in a pipe: not all releases of NetBSD and OpenBSD have EVFILT_USER.
type interrupter struct{ from, to int }

func (r *interrupter) open(kq int) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return err
	}
	r.from, r.to = ends[0], ends[1]
	var add [1]unix.Kevent_t
	unix.SetKevent(&add[0], r.from, unix.EVFILT_READ, unix.EV_ADD|unix.EV_CLEAR)
	err := change(kq, add[:])
	if err != nil {
		_ = r.close()
	}
	return err
}

// trigger ignores errors: EAGAIN is a full pipe, whose event has not been seen yet.
func (r *interrupter) trigger(int) { _, _ = unix.Write(r.to, []byte{0}) }

// triggered empties the pipe, because a full one would give no more edges. A byte written meanwhile
// is answered by the return of the present Wait or by a new edge.
func (r *interrupter) triggered(ev *unix.Kevent_t) bool {
	if int(ev.Ident) != r.from {
		return false
	}
	var buf [256]byte
	for {
		if n, err := unix.Read(r.from, buf[:]); n < len(buf) && err != unix.EINTR {
			return true
		}
	}
}

func (r *interrupter) close() error {
	err := closeFD(r.from)
	if e := closeFD(r.to); err == nil {
		err = e
	}
	return err
}
