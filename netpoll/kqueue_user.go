//go:build darwin || freebsd

package netpoll

import "golang.org/x/sys/unix"

// interrupter ends a wait by an event of the caller's own, which has a number (0) and no descriptor.
type interrupter struct{}

func (interrupter) open(kq int) error {
	var add [1]unix.Kevent_t
	unix.SetKevent(&add[0], 0, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR)
	return change(kq, add[:])
}

func (interrupter) trigger(kq int) {
	var trigger [1]unix.Kevent_t
	unix.SetKevent(&trigger[0], 0, unix.EVFILT_USER, 0)
	trigger[0].Fflags = unix.NOTE_TRIGGER
	_ = change(kq, trigger[:]) // the queue is open, see Poller, and the event registered
}

func (interrupter) triggered(ev *unix.Kevent_t) bool { return ev.Filter == unix.EVFILT_USER }

func (interrupter) close() error { return nil }
