//go:build darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"time"

	"golang.org/x/sys/unix"
)

// selector is kqueue(2).
//
// A kevent carries a word of the caller's that is as large as a pointer, of a pointer's type on most systems: too small
// for a tag where words are 32 bits, and a trap for the collector where the type is a pointer. So it stays empty, and
// tags has the tag by descriptor: kernels give out the lowest free number, so the slices are no longer than the process
// has descriptors. A closed descriptor's events are removed with it, so the tag found for a number is always the
// present one.
type selector struct {
	kq    int
	tags  []uint64 // by descriptor
	wants []Ready  // by descriptor: as added; 0: not added, or removed. One that was closed keeps it.
	buf   []unix.Kevent_t
	interrupter
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

func (s *selector) add(fd int, tag uint64, want Ready) error {
	switch want {
	case In, Out, In | Out, In | Shared:
	default:
		return unix.EINVAL
	}
	if fd < 0 {
		return unix.EBADF
	}
	for fd >= len(s.tags) {
		s.tags, s.wants = append(s.tags, 0), append(s.wants, 0)
	}
	if s.wants[fd] != 0 && s.has(fd) {
		return unix.EEXIST
	}
	s.tags[fd], s.wants[fd] = tag, want
	return s.filter(fd, want, unix.EV_ADD|unix.EV_CLEAR)
}

// has reports whether fd is registered: enabling its filters, which are enabled already, succeeds only then.
func (s *selector) has(fd int) bool { return s.filter(fd, s.wants[fd], unix.EV_ENABLE) == nil }

// filter changes the filters that want has.
func (s *selector) filter(fd int, want Ready, flags int) error {
	var changes [2]unix.Kevent_t
	unix.SetKevent(&changes[0], fd, unix.EVFILT_READ, flags)
	unix.SetKevent(&changes[1], fd, unix.EVFILT_WRITE, flags)
	switch want {
	case In | Out:
		return change(s.kq, changes[:])
	case Out:
		return change(s.kq, changes[1:])
	}
	return change(s.kq, changes[:1])
}

// remove takes the filters back.
func (s *selector) remove(fd int) error {
	if fd < 0 || fd >= len(s.wants) {
		return unix.ENOENT
	}
	want := s.wants[fd]
	s.wants[fd] = 0
	return s.filter(fd, want, unix.EV_DELETE)
}

// change applies changes and takes no events, so it does not sleep.
func change(kq int, changes []unix.Kevent_t) error {
	_, err := unix.Kevent(kq, changes, nil, nil)
	for err == unix.EINTR {
		_, err = unix.Kevent(kq, changes, nil, nil) // adding again changes nothing
	}
	return err
}

// longest is shorter than times that kernels refuse (Darwin: EINVAL); such a wait ends early, which a caller takes for
// a signal.
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
		fd := got[i].Ident
		events[n] = Event{s.tags[fd], ready(&got[i], s.wants[fd])}
		n++
	}
	return n
}

// ready translates an event. EV_EOF on the write filter alone means nothing, since CloseWrite sets it too; with an
// error in Fflags the connection has failed.
func ready(ev *unix.Kevent_t, want Ready) (r Ready) {
	ended := ev.Flags&unix.EV_EOF != 0
	switch {
	case ev.Filter == unix.EVFILT_WRITE:
		r = Out
	case want != In|Out:
		r = In
	case ended:
		r = In | Partial | PeerClosed
	default:
		r = In | Partial
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
