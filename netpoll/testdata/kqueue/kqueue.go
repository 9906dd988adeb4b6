// Package unix stands in for golang.org/x/sys/unix under the files of netpoll that are for kqueue, so that they run on
// Linux; TestKqueueEmulation puts it there. Its kqueue is strict:
//
//   - Each filter is an edge-triggered epoll of its own, so that it reports nothing but its own edges.
//   - EV_EOF comes as soon as the peer has ended, even with unread data before it.
//   - It refuses filters without EV_CLEAR, and calls that both change filters and wait. Netpoll uses neither.
package unix

import (
	"sync"

	linux "golang.org/x/sys/unix"
)

// Kevent_t is that of FreeBSD before 12.
type Kevent_t struct {
	Ident  uint64
	Filter int16
	Flags  uint16
	Fflags uint32
	Data   int64
	Udata  *byte
}

const (
	EVFILT_READ  = -1
	EVFILT_WRITE = -2
	EVFILT_USER  = -11
	EV_ADD       = 0x1
	EV_DELETE    = 0x2
	EV_ENABLE    = 0x4
	EV_CLEAR     = 0x20
	EV_ERROR     = 0x4000
	EV_EOF       = 0x8000
	NOTE_TRIGGER = 0x1000000
)

func SetKevent(k *Kevent_t, fd, mode, flags int) {
	*k = Kevent_t{Ident: uint64(fd), Filter: int16(mode), Flags: uint16(flags)}
}

// queue is a kqueue. Its number is that of the epoll of the read filter.
type queue struct {
	read, write int
	user        int // an eventfd: the event of EVFILT_USER
	added       bool
	got         [64]linux.EpollEvent // not on the heap: tests count
}

var queues struct {
	sync.Mutex
	of map[int]*queue
}

func Kqueue() (int, error) {
	var q queue
	var err error
	if q.read, err = linux.EpollCreate1(0); err != nil {
		return -1, err
	}
	if q.write, err = linux.EpollCreate1(linux.EPOLL_CLOEXEC); err != nil {
		_ = linux.Close(q.read)
		return -1, err
	}
	if q.user, err = linux.Eventfd(0, linux.EFD_NONBLOCK|linux.EFD_CLOEXEC); err != nil {
		_ = linux.Close(q.write)
		_ = linux.Close(q.read)
		return -1, err
	}
	queues.Lock()
	defer queues.Unlock()
	if queues.of == nil {
		queues.of = map[int]*queue{}
	}
	queues.of[q.read] = &q
	return q.read, nil
}

// Close closes the whole of a kqueue.
func Close(fd int) error {
	queues.Lock()
	q := queues.of[fd]
	delete(queues.of, fd)
	queues.Unlock()
	if q != nil {
		_ = linux.Close(q.write)
		_ = linux.Close(q.user)
	}
	return linux.Close(fd)
}

func Kevent(kq int, changes, events []Kevent_t, timeout *Timespec) (int, error) {
	queues.Lock()
	q := queues.of[kq]
	queues.Unlock()
	switch {
	case q == nil:
		return -1, linux.EBADF
	case len(changes) > 0 && len(events) > 0:
		return -1, linux.EINVAL
	case len(events) > 0:
		return q.wait(events, timeout)
	}
	for i := range changes {
		if err := q.change(&changes[i]); err != nil {
			return -1, err
		}
	}
	return 0, nil
}

func (q *queue) change(c *Kevent_t) error {
	if c.Flags&EV_ADD != 0 && c.Flags&EV_CLEAR == 0 {
		return linux.EINVAL
	}
	ev := linux.EpollEvent{Events: linux.EPOLLET, Fd: int32(c.Ident)}
	epoll := q.read
	switch c.Filter {
	case EVFILT_READ:
		ev.Events |= linux.EPOLLIN | linux.EPOLLRDHUP
	case EVFILT_WRITE:
		ev.Events |= linux.EPOLLOUT
		epoll = q.write
	case EVFILT_USER:
		return q.changeUser(c)
	default:
		return linux.EINVAL
	}
	if c.Flags&EV_DELETE != 0 {
		return linux.EpollCtl(epoll, linux.EPOLL_CTL_DEL, int(c.Ident), &ev)
	}
	if c.Flags&EV_ADD != 0 {
		if err := linux.EpollCtl(epoll, linux.EPOLL_CTL_ADD, int(c.Ident), &ev); err != linux.EEXIST {
			return err
		}
	}
	return linux.EpollCtl(epoll, linux.EPOLL_CTL_MOD, int(c.Ident), &ev)
}

func (q *queue) changeUser(c *Kevent_t) (err error) {
	if c.Flags&EV_ADD != 0 {
		q.added = true
	}
	if !q.added {
		return linux.ENOENT
	}
	if c.Fflags&NOTE_TRIGGER != 0 {
		_, err = linux.Write(q.user, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	return err
}

func (q *queue) wait(events []Kevent_t, timeout *Timespec) (n int, err error) {
	fds := [...]linux.PollFd{
		{Fd: int32(q.read), Events: linux.POLLIN},
		{Fd: int32(q.write), Events: linux.POLLIN},
		{Fd: int32(q.user), Events: linux.POLLIN},
	}
	if n, err = linux.Ppoll(fds[:], timeout, nil); n <= 0 {
		return n, err
	}
	n = 0
	var count [8]byte
	if m, _ := linux.Read(q.user, count[:]); m == len(count) {
		events[0] = Kevent_t{Filter: EVFILT_USER, Flags: EV_CLEAR}
		n++
	}
	n += q.take(q.read, EVFILT_READ, events[n:])
	n += q.take(q.write, EVFILT_WRITE, events[n:])
	if n == 0 { // an event was none any more; a real one would go on waiting
		return -1, linux.EINTR
	}
	return n, nil
}

// take returns how many events of a filter there are; those without room come the next time.
func (q *queue) take(epoll int, filter int16, events []Kevent_t) int {
	got := q.got[:min(len(events), len(q.got))]
	if len(got) == 0 {
		return 0
	}
	n, _ := linux.EpollWait(epoll, got, 0)
	for i := range max(n, 0) {
		events[i] = event(got[i], filter)
	}
	return max(n, 0)
}

func event(e linux.EpollEvent, filter int16) Kevent_t {
	k := Kevent_t{Ident: uint64(e.Fd), Filter: filter, Flags: EV_CLEAR}
	if e.Events&(linux.EPOLLRDHUP|linux.EPOLLHUP|linux.EPOLLERR) != 0 {
		k.Flags |= EV_EOF
	}
	if e.Events&linux.EPOLLERR != 0 {
		k.Fflags = uint32(linux.ECONNRESET) // so_error, which cannot be asked for here without taking it
	}
	return k
}
