package monitor

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/daimon-go/daimon/act"
)

// output is the sending side of a socket while a goroutine has it: an Output.
//
//	the goroutine                        the scheduler's thread
//	Send: the kernel takes no more ────▶ Full, unless there was room since then: Await
//	Send again                    ◀───── the kernel reports room
type output struct {
	k     *socket
	rooms atomic.Uint32 // how often the kernel has reported room
	sent  atomic.Uint64 // bytes

	mu    sync.Mutex // so that the descriptor is not closed during a call
	fd    int        // -1: the loan has ended
	seen  uint32     // rooms before the latest call
	calls uint64     // not counted yet
	err   error      // of the kernel

	counted uint64 // of sent
}

func (k *socket) LendOutput() Output {
	k.settle()
	if k.sendable() != nil || k.queued() > 0 || k.state&full != 0 || k.out != nil && k.out.lent != nil {
		return nil
	}
	o := &output{k: k, fd: int(k.fd)}
	k.outbound().lent = o
	return o
}

// Send takes a short send to mean that there is no more room, as socket.flush does.
func (o *output) Send(head, p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.begin(); err != nil {
		return 0, err
	}
	n, err := o.k.source.e.os.Send(o.fd, head, p)
	switch {
	case err == syscall.EAGAIN:
		return 0, ErrWouldBlock
	case err != nil:
		o.err = err
		return 0, err
	}
	o.took(n)
	if n < len(head)+len(p) {
		err = ErrWouldBlock
	}
	return n, err
}

func (o *output) SendFile(f *os.File, offset int64, n int) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.begin(); err != nil {
		return 0, err
	}
	n, err := o.k.source.e.os.SendFile(o.fd, f, offset, n)
	if n > 0 {
		o.took(n)
		return n, nil
	}
	err, broken := fileError(f, offset, err)
	if broken {
		o.err = err
	}
	return 0, err
}

// begin begins a system call, under mu.
func (o *output) begin() error {
	if o.fd < 0 {
		return net.ErrClosed
	}
	o.seen = o.rooms.Load()
	return o.err
}

// took notes what a call has sent.
func (o *output) took(n int) {
	o.calls++
	o.sent.Add(uint64(n))
}

func (o *output) Sent() uint64 { return o.sent.Load() }

func (o *output) Full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fd < 0 || o.seen != o.rooms.Load() || o.k.sendable() != nil {
		return false
	}
	o.k.state |= full
	o.count()
	return true
}

// count counts the sent bytes, on the scheduler's thread, when no call is under way.
func (o *output) count() {
	e, sent := o.k.source.e, o.Sent()
	if sent > o.counted {
		o.k.since = e.tick()
	}
	e.counts.Sends += o.calls
	e.counts.Sent += sent - o.counted
	o.calls, o.counted = 0, sent
}

func (o *output) Await(w act.Waker) { o.k.AwaitOutput(w, 0) }

// Return waits for a call that is under way.
func (o *output) Return() {
	o.mu.Lock()
	lent := o.fd >= 0
	o.fd = -1
	o.mu.Unlock()
	if !lent {
		return
	}
	k := o.k
	k.out.lent = nil
	k.state &^= full
	if o.Sent() > 0 {
		k.state |= taken
	}
	o.count()
	if o.err != nil {
		k.fail(o.err)
	}
	k.calm()
}
