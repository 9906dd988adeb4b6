package monitor

import (
	"io"

	"github.com/daimon-go/daimon/netpoll"
)

// linger closes a socket as far as possible now: it sends the queue, closes the write side, and reads until the peer
// has closed too, so that the kernel has no reason to reset the connection before the last bytes arrive.
func (k *socket) linger() {
	if k.out.err == nil && k.queued() > 0 {
		k.flush()
	} else if k.out.err == nil {
		k.flushed()
	}
	k.discard()
	if k.out.err != nil || k.state&(ended|finished) == ended|finished {
		k.release(k.source.e.os.Close)
	}
}

// discard receives once and throws it away. While there may be more it is called again in the next pass: a peer that
// sends endlessly gets one receive a pass, until its time is up.
func (k *socket) discard() {
	if k.ready&netpoll.In == 0 || k.state&finished != 0 {
		return
	}
	e := k.source.e
	switch _, err := k.receive(e.loans.Room(e.s)); {
	case err == nil:
		if k.ready&netpoll.In != 0 && k.state&discarding == 0 {
			k.state |= discarding
			if len(e.again) == 0 {
				e.s.CallAt(&e.soon, e.s.Now(), nextPass{}) // or a caller of Step would find nothing to do
			}
			e.again = append(e.again, k)
		}
	case err != ErrWouldBlock && err != io.EOF:
		k.out.err = err // the connection is broken
	}
}

// nextPass is for a timer that only makes sure that there is a next pass.
type nextPass struct{}

func (nextPass) Expire() {}

// discardAgain gives each socket one more receive; one that needs yet another waits for the next pass.
func (e *readiness) discardAgain() {
	now := e.again
	e.again, e.before = e.before, nil
	for i, k := range now {
		now[i] = nil
		k.state &^= discarding
		if k.fd >= 0 {
			k.linger()
		}
	}
	e.before = now[:0]
}

// Expire ends a linger whose time is up. A peer that has not taken everything sees a reset.
func (o *outbound) Expire() {
	k := o.k
	if k.queued() > 0 {
		k.Abort()
		return
	}
	k.release(k.source.e.os.Close)
}

// release closes the descriptor by one of the two ways of the OS, and gives everything back.
func (k *socket) release(how func(fd int) error) {
	e := k.source.e
	fd := int(k.fd)
	k.fd = -1
	e.slots.free(k.slot)
	_ = how(fd) // the descriptor is closed whatever is returned (close(2)), and no caller is left
	e.counts.Open--
	if k.state&lingering != 0 {
		e.counts.Lingering--
		e.s.Internals().KeepRunning(-1)
	}
	if o := k.out; o != nil {
		o.timer.Stop()
		o.free()
		k.out = nil
		e.giveOutbound(o)
	}
	k.source.limiter.Release()
	e.descriptorFreed()
}

// Buffers and outbound parts are kept for the next socket: connections at rest share the few that are needed at a time.
const (
	bufferSize  = 16 << 10
	keepBuffers = 64
)

func (e *readiness) takeBuffer() []byte {
	if n := len(e.buffers); n > 0 {
		b := e.buffers[n-1]
		e.buffers = e.buffers[:n-1]
		return b
	}
	return make([]byte, 0, bufferSize)
}

func (e *readiness) giveBuffer(b []byte) {
	if cap(b) >= bufferSize && cap(b) <= 4*bufferSize && len(e.buffers) < keepBuffers {
		e.buffers = append(e.buffers, b[:0])
	}
}

func (e *readiness) takeOutbound() *outbound {
	if n := len(e.idle); n > 0 {
		o := e.idle[n-1]
		e.idle = e.idle[:n-1]
		return o
	}
	return &outbound{}
}

func (e *readiness) giveOutbound(o *outbound) {
	*o = outbound{writers: o.writers[:0]}
	if len(e.idle) < keepBuffers && cap(o.writers) <= keepBuffers {
		e.idle = append(e.idle, o)
	}
}
