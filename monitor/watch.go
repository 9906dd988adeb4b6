package monitor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// Watched is a descriptor that a scheduler watches, made by [Watch]. Wait for it with a listener.Ready, or with
// Readable and Writable. One task at a time waits for input, and one for room. Its methods belong to the scheduler's
// thread.
type Watched struct {
	fd    int
	stop  func() error
	err   error // why it is no longer watched; nil: it is
	input side
	room  side
}

// side is one of the two that a descriptor may be watched for. It is the error of a call that has to wait: no allocation.
type side struct {
	w       *Watched
	name    string // for its task
	watched bool
	ready   bool // reported and not taken
	waiter  act.Waker
}

// Watch makes the engine of s report when fd is ready: any descriptor that a poller takes, such as a pipe, a terminal,
// an eventfd, a timerfd, inotify, a pidfd, or the socket of a C library. want is netpoll.In, netpoll.Out, or both;
// anything else panics. On the BSDs and Darwin some descriptors have only one of them.
//
// The caller goes on owning fd, which has to be non-blocking (O_NONBLOCK) if it is read from or written to on this thread. It
// calls Close before it closes fd, and at the latest when s is closed: if fd is closed first, waiting tasks are woken
// only when this scheduler watches another descriptor with the same number, or at Close. A watch does not keep
// [act.Scheduler.Run] from returning; a task that waits for it does.
//
// Linux refuses to watch descriptors that are always ready (EPERM): regular files, directories, /dev/null, most files
// of /proc. A descriptor that this scheduler already watches is refused as well (EEXIST). Watch is called on the thread
// of s, and panics if s is closed.
func Watch(s *act.Scheduler, fd int, want netpoll.Ready) (*Watched, error) {
	if want == 0 || want&^(netpoll.In|netpoll.Out) != 0 {
		panic("monitor: Watch is for netpoll.In, netpoll.Out, or both")
	}
	e, err := EngineOf(s)
	if err != nil {
		return nil, err
	}
	w := &Watched{fd: fd}
	w.input = side{w: w, name: "input from", watched: want&netpoll.In != 0}
	w.room = side{w: w, name: "room in", watched: want&netpoll.Out != 0}
	if w.stop, err = e.Watch(fd, want, w.report); err != nil {
		return nil, fmt.Errorf("monitor: descriptor %d%s: %w", fd, whyNot(err), err)
	}
	return w, nil
}

// whyNot says what the kernel's error means here.
func whyNot(err error) string {
	switch {
	case errors.Is(err, syscall.EPERM):
		return " cannot be watched, since it is always ready, as regular files are"
	case errors.Is(err, syscall.EEXIST):
		return " is watched already"
	}
	return " cannot be watched"
}

// report keeps the readiness that an event reports until it is taken.
func (w *Watched) report(r netpoll.Ready) {
	if r == 0 {
		w.end(fmt.Errorf("monitor: descriptor %d was closed while it was watched", w.fd))
		return
	}
	if r&^netpoll.Out != 0 { // a read returns the error or the end
		w.input.report()
	}
	if r&(netpoll.Out|netpoll.Error) != 0 {
		w.room.report()
	}
}

func (w *Watched) end(err error) {
	w.err = err
	w.input.waiter.Wake()
	w.room.waiter.Wake()
}

// Readable returns nil once for each report that fd may be read. Otherwise the error is an [act.Blocked], which wakes a
// task at the next report; after Close it wraps os.ErrClosed. Readable panics if fd is not watched for netpoll.In.
//
// A report means that something changed, and several reports may count as one. So after nil, read until EAGAIN, and
// only then call Readable again. There may be nothing to read.
func (w *Watched) Readable() error { return w.input.take() }

// Writable is [Watched.Readable] for room to write. After nil, write until EAGAIN. It panics if fd is not watched for
// netpoll.Out.
func (w *Watched) Writable() error { return w.room.take() }

// Close ends the watch, and leaves fd open. It wakes the waiting tasks, whose next calls return an error that wraps
// os.ErrClosed. Close fails if fd was closed before. A second Close does nothing.
func (w *Watched) Close() error {
	if _, again := w.err.(*closedWatch); again {
		return nil
	}
	err := w.err
	if err == nil {
		if err = w.stop(); err != nil {
			err = fmt.Errorf("monitor: descriptor %d was closed while it was watched: %w", w.fd, err)
		}
	}
	w.end((*closedWatch)(w))
	return err
}

// Describe implements [act.Describer]: it covers all tasks that wait for w. The errors of Readable and Writable cover
// only the task of their side.
func (w *Watched) Describe(d *act.Description) {
	w.input.Describe(d)
	w.room.Describe(d)
}

// closedWatch is a Watched as the error of a call after Close.
type closedWatch Watched

func (w *closedWatch) Error() string {
	return fmt.Sprintf("monitor: the watch of descriptor %d was closed", w.fd)
}
func (w *closedWatch) Unwrap() error { return os.ErrClosed }

func (x *side) report() {
	x.ready = true
	x.waiter.Wake()
}

func (x *side) take() error {
	switch {
	case !x.watched:
		panic("monitor: Readable is for a watch of netpoll.In, and Writable for one of netpoll.Out")
	case x.w.err != nil:
		return x.w.err
	case !x.ready:
		return x
	}
	x.ready = false
	return nil
}

func (x *side) Error() string { return fmt.Sprintf("monitor: no %s descriptor %d yet", x.name, x.w.fd) }

func (x *side) Describe(d *act.Description) {
	if x.waiter.Armed() {
		d.WaitsFor(fmt.Sprint(x.name, " descriptor ", x.w.fd))
	}
}

// Arm makes the next report wake t.
func (x *side) Arm(t *act.Task) {
	x.waiter = t.Waker()
	if x.w.err != nil || x.ready { // it came between
		x.waiter.Wake()
	}
}

// descriptor is a descriptor that the readiness engine watches for a caller that owns it.
type descriptor struct {
	e      *readiness
	fd     int
	slot   uint32
	over   bool
	report func(netpoll.Ready)
}

func (e *readiness) Watch(fd int, want netpoll.Ready, report func(netpoll.Ready)) (stop func() error, err error) {
	d := &descriptor{e: e, fd: fd, report: report}
	if d.slot, err = e.register(fd, want, d); err != nil {
		return nil, err
	}
	if e.foreign == nil {
		e.foreign = map[int]*descriptor{}
	}
	e.foreign[fd] = d
	return d.stop, nil
}

func (d *descriptor) event(r netpoll.Ready) { d.report(r) }

// stop takes the descriptor from the poller. It fails if the descriptor was closed: the number may belong to another
// file.
func (d *descriptor) stop() error {
	if d.over {
		return nil
	}
	d.Abort()
	return d.e.poller.Remove(d.fd)
}

// Abort forgets the descriptor, when its poller is about to be closed.
func (d *descriptor) Abort() {
	d.over = true
	d.e.slots.free(d.slot)
	delete(d.e.foreign, d.fd)
}

// reused is called when a poller has taken the number fd. If a watched descriptor had it, that was closed.
func (e *readiness) reused(fd int) {
	if d := e.foreign[fd]; d != nil {
		d.Abort()
		d.report(0)
	}
}
