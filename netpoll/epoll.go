//go:build linux

package netpoll

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// selector is epoll(7) with an eventfd(2) to wake it.
//
// The eventfd is registered edge-triggered and never read: each write is a new edge, even when the counter was not
// zero, and 2^64 writes do not happen. That saves the read a level-triggered one needs.
type selector struct {
	epfd, wakefd int
	buf          []unix.EpollEvent // filled by the kernel; len grows to the largest batch asked for
	coarse       bool              // the kernel has no epoll_pwait2: deadlines are rounded up to milliseconds
}

// kernelTimespec is struct __kernel_timespec: 64 bits on every machine, unlike struct timespec.
type kernelTimespec struct{ sec, nsec int64 }

func (s *selector) open() (err error) {
	if s.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if s.wakefd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		_ = closeFD(s.epfd)
		return err
	}
	if err = s.control(s.wakefd, reserved, unix.EPOLLIN|unix.EPOLLET); err != nil {
		_ = s.close()
	}
	return err
}

// add asks for the events of want. ERR and HUP are always reported. An exclusive registration takes IN, OUT, ET and WAKEUP
// only: with RDHUP or PRI it is EINVAL (epoll_ctl(2)).
func (s *selector) add(fd int, tag uint64, want Ready) error {
	events := uint32(unix.EPOLLET)
	switch want {
	case In:
		events |= unix.EPOLLIN
	case Out:
		events |= unix.EPOLLOUT
	case In | Out:
		events |= unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI
	case In | Shared:
		events |= unix.EPOLLIN | unix.EPOLLEXCLUSIVE
	default:
		return unix.EINVAL
	}
	return s.control(fd, tag, events)
}

func (s *selector) remove(fd int) error {
	return unix.EpollCtl(s.epfd, unix.EPOLL_CTL_DEL, fd, &unix.EpollEvent{}) // not nil: Linux before 2.6.9
}

// control registers. The two words of the event's data hold the tag, whatever x/sys/unix calls them.
func (s *selector) control(fd int, tag uint64, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(tag), Pad: int32(tag >> 32)}
	return unix.EpollCtl(s.epfd, unix.EPOLL_CTL_ADD, fd, &ev)
}

func (s *selector) wait(events []Event, atMost time.Duration) (int, error) {
	if len(s.buf) < len(events) {
		s.buf = make([]unix.EpollEvent, len(events))
	}
	n, errno := s.ask(len(events), atMost)
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, errno
	}
	return translate(events, s.buf[:n]), nil
}

// ask makes the system call. A poll without a wait cannot sleep, so it goes to the kernel directly; a wait goes through
// the runtime, which takes the processor from this thread meanwhile.
func (s *selector) ask(room int, atMost time.Duration) (int, unix.Errno) {
	if atMost == 0 {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.epfd),
			uintptr(unsafe.Pointer(&s.buf[0])), uintptr(room), 0, 0, 0)
		return int(n), errno
	}
	if atMost > 0 && !s.coarse {
		ts := kernelTimespec{int64(atMost / time.Second), int64(atMost % time.Second)}
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(s.epfd),
			uintptr(unsafe.Pointer(&s.buf[0])), uintptr(room), uintptr(unsafe.Pointer(&ts)), 0, 0)
		// ENOSYS before Linux 5.11; EPERM comes from the system call filter of an old container runtime for calls that it
		// does not know, and never from epoll_pwait2 itself.
		if errno != unix.ENOSYS && errno != unix.EPERM {
			return int(n), errno
		}
		s.coarse = true
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.epfd),
		uintptr(unsafe.Pointer(&s.buf[0])), uintptr(room), uintptr(milliseconds(atMost)), 0, 0)
	return int(n), errno
}

// milliseconds rounds up, so that a wait is never early, and keeps -1 for "no deadline". Above the kernel's limit of
// 24 days the wait ends early, which a caller takes for a signal.
func milliseconds(d time.Duration) int {
	if d < 0 {
		return -1
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return int(min(ms, math.MaxInt32))
}

// translate leaves out the interrupt's own event.
func translate(events []Event, got []unix.EpollEvent) int {
	n := 0
	for i := range got {
		tag := uint64(uint32(got[i].Fd)) | uint64(uint32(got[i].Pad))<<32
		if tag == reserved {
			continue
		}
		events[n] = Event{tag, ready(got[i].Events)}
		n++
	}
	return n
}

func ready(events uint32) (r Ready) {
	if events&unix.EPOLLIN != 0 {
		r |= In
	}
	if events&unix.EPOLLOUT != 0 {
		r |= Out
	}
	if events&unix.EPOLLRDHUP != 0 {
		r |= PeerClosed
	}
	if events&unix.EPOLLPRI != 0 {
		r |= Priority
	}
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		r |= Error
	}
	return r
}

// wake adds one to the counter. No error is possible: the descriptor is open, see Poller, and the counter far from
// full.
func (s *selector) wake() {
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(s.wakefd), uintptr(unsafe.Pointer(&one)), 8)
}

func (s *selector) close() error {
	err := closeFD(s.epfd)
	if e := closeFD(s.wakefd); err == nil {
		err = e
	}
	return err
}
