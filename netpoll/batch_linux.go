package netpoll

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/race"
)

// ring is an io_uring(7). Its calls do not wait (MSG_DONTWAIT), so io_uring_enter(2) makes them itself: no thread of the
// kernel works for it, and their completions are there when it returns.
type ring struct {
	fd          int
	rings       []byte // mapped: both queues
	entries     []byte // mapped: what submissions lies in
	submissions []submission
	completions []completion

	head, tail  *uint32 // of the submissions: the kernel takes at head, we put at tail
	taken, done *uint32 // of the completions: we take at taken, the kernel puts at done

	calls []Call // of the present do: what they point to is in the heap, where memory does not move
}

// submission, completion and ringParams are struct io_uring_sqe, io_uring_cqe and io_uring_params of linux/io_uring.h.
type submission struct {
	op, flags uint8
	priority  uint16
	fd        int32
	offset    uint64
	addr      uint64
	len       uint32
	msgFlags  uint32
	tag       uint64
	_         [3]uint64
}

type completion struct {
	tag    uint64
	result int32
	flags  uint32
}

type ringParams struct {
	submissions, completions, flags, thread, idle, features, workers uint32

	_   [3]uint32
	sub struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }
	com struct{ head, tail, mask, entries, overflow, at, flags, _, _, _ uint32 }
}

const (
	submitAll = 1 << 7 // go on after a call that fails: IORING_SETUP_SUBMIT_ALL
	getEvents = 1 << 0 // wait for completions: IORING_ENTER_GETEVENTS
	opSend    = 26
	opReceive = 27

	offsetRings   = 0
	offsetEntries = 0x10000000
)

func (r *ring) open(n int) error {
	p := ringParams{flags: submitAll}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(n), uintptr(unsafe.Pointer(&p)), 0) // close-on-exec
	if errno != 0 {
		return fmt.Errorf("netpoll: there is no io_uring here, %s: %w", refusal(errno), errno)
	}
	r.fd = int(fd)
	if err := r.mapRings(&p); err != nil {
		_ = r.close()
		return fmt.Errorf("netpoll: mapping the memory of io_uring: %w", err)
	}
	for i := range p.submissions {
		*r.at(p.sub.array + 4*i) = i
	}
	return nil
}

// refusal says what an error of io_uring_setup(2) means.
func refusal(errno syscall.Errno) string {
	switch errno {
	case unix.ENOSYS:
		return "the kernel is older than 5.1, or a filter of system calls hides it (seccomp)"
	case unix.EPERM:
		return "it is forbidden by a filter of system calls (seccomp), as containers have, or by kernel.io_uring_disabled"
	case unix.EINVAL:
		return "the kernel is older than 5.18"
	case unix.ENOMEM:
		return "there is too little memory, or the limit of locked memory is too low (ulimit -l)"
	case unix.EMFILE, unix.ENFILE:
		return "there are too few descriptors"
	}
	return "the kernel refuses it"
}

func (r *ring) mapRings(p *ringParams) (err error) {
	size := max(p.sub.array+4*p.submissions, p.com.at+p.completions*uint32(unsafe.Sizeof(completion{})))
	if r.rings, err = r.mapAt(offsetRings, int(size)); err != nil {
		return err
	}
	if r.entries, err = r.mapAt(offsetEntries, int(p.submissions)*int(unsafe.Sizeof(submission{}))); err != nil {
		return err
	}
	r.head, r.tail, r.taken, r.done = r.at(p.sub.head), r.at(p.sub.tail), r.at(p.com.head), r.at(p.com.tail)
	r.submissions = unsafe.Slice((*submission)(unsafe.Pointer(&r.entries[0])), p.submissions)
	r.completions = unsafe.Slice((*completion)(unsafe.Pointer(r.at(p.com.at))), p.completions)
	return nil
}

func (r *ring) mapAt(offset int64, size int) ([]byte, error) {
	return unix.Mmap(r.fd, offset, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// at returns a word of the mapped queues.
func (r *ring) at(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[offset])) }

func (r *ring) room() int { return len(r.submissions) }

// do makes at most room calls. What the kernel does not take, since it has no memory, is made one by one.
func (r *ring) do(calls []Call) {
	release()
	r.calls = calls
	r.put()
	begun := 0
	for begun < len(calls) {
		n, errno := r.enter(len(calls)-begun, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			atomic.StoreUint32(r.tail, *r.head)
			for i := range calls[begun:] {
				calls[begun+i].Make(System{})
			}
			break
		}
		begun += n
	}
	for got := 0; got < begun; {
		n := r.take()
		if got += n; n == 0 {
			_, _ = r.enter(0, 1) // not reached as long as no call waits; an error is repeated, or is EINTR
		}
	}
	r.calls = nil
}

// put fills the submissions.
func (r *ring) put() {
	tail, mask := *r.tail, uint32(len(r.submissions)-1)
	for i := range r.calls {
		c := &r.calls[i]
		s := submission{op: opReceive, fd: int32(c.FD), addr: uint64(uintptr(unsafe.Pointer(&c.P[0]))), len: uint32(len(c.P)),
			msgFlags: unix.MSG_DONTWAIT, tag: uint64(i)}
		if c.Send {
			s.op, s.msgFlags = opSend, sendFlags
		}
		r.submissions[(tail+uint32(i))&mask] = s
	}
	atomic.StoreUint32(r.tail, tail+uint32(len(r.calls)))
}

// enter submits n calls, and waits for so many completions. The calls do not wait, so the system call is a raw one as long as it
// need not.
func (r *ring) enter(n, wait int) (int, syscall.Errno) {
	if wait > 0 {
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), uintptr(wait), getEvents, 0, 0)
		return int(n), errno
	}
	got, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 0, 0, 0, 0)
	return int(got), errno
}

// take takes the completions that are there, and returns how many.
func (r *ring) take() int {
	from, to, mask := *r.taken, atomic.LoadUint32(r.done), uint32(len(r.completions)-1)
	for i := from; i != to; i++ {
		x := &r.completions[i&mask]
		r.calls[x.tag].complete(int(x.result))
	}
	atomic.StoreUint32(r.taken, to)
	return int(to - from)
}

// complete sets what a call has returned.
func (c *Call) complete(result int) {
	c.N, c.Err = max(0, result), nil
	if result < 0 {
		c.Err = syscall.Errno(-result)
	}
	if race.Enabled && result > 0 && !c.Send {
		_, _ = syscall.Read(c.FD, nil) // as in receive
	}
}

func (r *ring) close() error {
	for _, m := range [][]byte{r.rings, r.entries} {
		if m != nil {
			_ = unix.Munmap(m) // it fails only for memory that is not mapped
		}
	}
	return closeFD(r.fd)
}
