//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"time"

	"golang.org/x/sys/unix"
)

// selector is kqueue(2).
//
// A kevent carries a word of the caller's, of a pointer's type on most systems: too small for a tag on 32 bits, and a
// trap for the collector. So it stays empty, and tags has the tag by descriptor: systems give out the lowest free
// number, which keeps the slice short. A closed descriptor's events are gone with it, so the tag is the present one's.
type selector struct {
	kq   int
	tags []entry // by descriptor
	buf  []unix.Kevent_t
	interrupter
}

type entry struct {
	tag  uint64
	kind Kind
}

func (s *selector) open() (err error) {
	if s.kq, err = unix.Kqueue(); err != nil {
		return err
	}
	unix.CloseOnExec(s.kq) // a child by fork does not inherit it anyway (kqueue(2))
	if err = s.interrupter.open(s.kq); err != nil {
		_ = closeFD(s.kq)
	}
	return err
}

func (s *selector) add(fd int, tag uint64, k Kind) error {
	if k > SharedListener {
		return unix.EINVAL
	}
	if fd < 0 {
		return unix.EBADF
	}
	if more := fd + 1 - len(s.tags); more > 0 {
		s.tags = append(s.tags, make([]entry, more)...)
	}
	s.tags[fd] = entry{tag, k}
	var changes [2]unix.Kevent_t
	unix.SetKevent(&changes[0], fd, unix.EVFILT_READ, unix.EV_ADD|unix.EV_CLEAR)
	unix.SetKevent(&changes[1], fd, unix.EVFILT_WRITE, unix.EV_ADD|unix.EV_CLEAR)
	if k == Stream {
		return change(s.kq, changes[:])
	}
	return change(s.kq, changes[:1])
}

// remove takes the filters back; a listener has no second one.
func (s *selector) remove(fd int) error {
	if fd < 0 || fd >= len(s.tags) {
		return unix.ENOENT
	}
	var changes [2]unix.Kevent_t
	unix.SetKevent(&changes[0], fd, unix.EVFILT_READ, unix.EV_DELETE)
	unix.SetKevent(&changes[1], fd, unix.EVFILT_WRITE, unix.EV_DELETE)
	if s.tags[fd].kind == Stream {
		return change(s.kq, changes[:])
	}
	return change(s.kq, changes[:1])
}

// change applies changes and takes no events, so it does not sleep.
func change(kq int, changes []unix.Kevent_t) error {
	_, err := unix.Kevent(kq, changes, nil, nil)
	for err == unix.EINTR {
		_, err = unix.Kevent(kq, changes, nil, nil) // adding again changes nothing
	}
	return err
}

// longest keeps below what kernels take for a mistake (Darwin says EINVAL); such a wait ends early,
// which a caller takes for a signal.
const longest = 1e6 * time.Second

func (s *selector) wait(events []Event, atMost time.Duration) (int, error) {
	if len(s.buf) < len(events) {
		s.buf = make([]unix.Kevent_t, len(events))
	}
	var deadline *unix.Timespec
	if atMost >= 0 {
		ts := unix.NsecToTimespec(int64(min(atMost, longest)))
		deadline = &ts
	}
	n, err := unix.Kevent(s.kq, nil, s.buf[:len(events)], deadline)
	switch err {
	case nil:
	case unix.EINTR, unix.ETIMEDOUT: // the latter has been seen on Darwin (go.dev/issue/59679)
		return 0, nil
	default:
		return 0, err
	}
	return s.translate(events, s.buf[:n]), nil
}

// translate leaves out the interrupt's own event.
func (s *selector) translate(events []Event, got []unix.Kevent_t) int {
	n := 0
	for i := range got {
		if s.triggered(&got[i]) {
			continue
		}
		e := s.tags[got[i].Ident]
		events[n] = Event{e.tag, ready(&got[i], e.kind)}
		n++
	}
	return n
}

// ready: EV_EOF on the write filter is no news by itself, CloseWrite sets it too; with an error in
// Fflags it is a connection that failed.
func ready(ev *unix.Kevent_t, k Kind) (r Ready) {
	ended := ev.Flags&unix.EV_EOF != 0
	switch {
	case ev.Filter == unix.EVFILT_WRITE:
		r = Out
	case k != Stream:
		r = In
	case ended:
		r = In | Priority | PeerClosed
	default:
		r = In | Priority
	}
	if ev.Flags&unix.EV_ERROR != 0 || ended && ev.Fflags != 0 {
		r |= Error
	}
	return r
}

func (s *selector) wake() { s.trigger(s.kq) }

func (s *selector) close() error {
	err := s.interrupter.close()
	if e := closeFD(s.kq); err == nil {
		err = e
	}
	return err
}
