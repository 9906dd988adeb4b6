package monitor

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/netpoll"
)

// batch makes the receives of many sockets with one system call, and their sends with another one.
//
//	poll: 20 sockets are readable ▶ receive ahead: 1 call ▶ 20 turns: Lend and Send make no call ▶ pass ends, flush: 1 call
//
// Sockets with few readable ones beside them, and ones that get or send many bytes at a time, make their calls by themselves:
// a batch of these would be slower (docs/engine.md has the figures). No call is under way between two functions of batch.
type batch struct {
	e     *readiness
	least int // a batch has at least so many receives; 0: there are no batches
	calls engine.Batch
	end   func() // passEnd

	readable []*socket // in the present poll
	receives []netpoll.Call
	ahead    [mostAhead + 1]ahead // by socket.ahead; the first one is not used
	spare    []uint8              // numbers of the ones that are free
	polled   int                  // of spare: as many were free in the latest poll

	gathers bool          // sends are put together, in this pass
	written int           // how many could have been
	began   time.Duration // the time of the first one
	most    int           // so many are put together
	sends   []netpoll.Call
	senders []*socket // of sends
	bytes   []byte    // of sends
}

// ahead is memory with what was received for a socket, before the turn of its task.
type ahead struct {
	memory []byte
	unread []byte // part of it
}

const (
	// leastReceives is from how many on a batch is not slower than single calls, as measured.
	leastReceives = 8
	// mostCalls bounds a batch.
	mostCalls = 64
	// longest bounds how long a send waits for others, as far as turns take as long as in the latest pass with a batch.
	longest = 200 * time.Microsecond
	// mostAhead bounds the sockets for which bytes were received ahead, and which their tasks have not taken yet.
	mostAhead = 128
	// aheadSize is the memory for each. It is not a power of two: parts of memory that lie 4096 bytes apart would compete
	// for one place in the processor's caches.
	aheadSize = few + 64
	// mostGathered bounds the bytes of all gathered sends together.
	mostGathered = 16 << 10
	// few bytes are received and sent in batches, as measured: at 2 KiB a batch is slower.
	few = 1 << 10
)

// refusal is logged once: all schedulers get the same one.
var refusal sync.Once

func (b *batch) init(e *readiness, how Engine) error {
	b.e, b.end, b.most = e, b.passEnd, mostCalls
	switch how {
	case Auto:
		b.least = leastReceives
	case Uring:
		b.least = 1
		return b.open()
	}
	return nil
}

// open opens the batch, with the first use in the mode Auto.
func (b *batch) open() (err error) {
	if b.calls, err = b.e.os.OpenBatch(mostCalls); err != nil {
		b.calls, b.least = nil, 0
		return err
	}
	for i := range uint8(mostAhead) {
		b.ahead[i+1].memory = make([]byte, aheadSize)
		b.spare = append(b.spare, mostAhead-i)
	}
	b.bytes = make([]byte, 0, mostGathered)
	return nil
}

// opened reports whether there can be a batch.
func (b *batch) opened() bool {
	if b.calls == nil {
		// Other systems have none; only a kernel that could have it says ENOSYS, which is an ErrUnsupported as well.
		if err := b.open(); err != nil && (!errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOSYS)) {
			refusal.Do(func() { b.e.s.Logger().Info("calls are made one by one", zap.Error(err)) })
		}
	}
	return b.calls != nil
}

func (b *batch) close() {
	if b.calls != nil {
		_ = b.calls.Close() // nothing is under way that could be lost
	}
}

// note notes that the poll has reported k, before a task is woken.
func (b *batch) note(k *socket, r netpoll.Ready) {
	if b.least > 0 && r|netpoll.Out == netpoll.In|netpoll.Out && k.state&(dialing|lingering|forEnd|bulky) == 0 &&
		k.reader.Armed() { // so nothing is there: see AwaitInput
		b.readable = append(b.readable, k)
	}
}

// receive receives for the noted sockets, if they are enough.
func (b *batch) receive() {
	b.spoil()
	if n := len(b.readable); n > 0 && n >= b.least && !b.e.budget.Paused() && b.opened() {
		b.gathers = true
		b.e.s.Internals().AtPassEnd(b.end)
		b.receiveAhead(b.readable[:min(n, len(b.spare))])
	}
	clear(b.readable)
	b.readable = b.readable[:0]
	b.polled = len(b.spare)
}

// spoil overwrites what the turns since the latest poll have taken, with the race detector.
func (b *batch) spoil() {
	if race.Enabled {
		for _, i := range b.spare[b.polled:] {
			race.Spoil(b.ahead[i].memory)
		}
	}
}

func (b *batch) receiveAhead(all []*socket) {
	b.receives = b.receives[:0]
	for _, k := range all {
		last := len(b.spare) - 1
		k.ahead, b.spare = b.spare[last], b.spare[:last]
		b.receives = append(b.receives, netpoll.Call{FD: int(k.fd), P: b.ahead[k.ahead].memory})
	}
	b.calls.Do(b.receives)
	for i, k := range all {
		switch c := &b.receives[i]; {
		case c.N > 0:
			b.ahead[k.ahead].unread = c.P[:c.N]
			k.received(c.N, aheadSize)
			continue
		case c.Err == syscall.EAGAIN:
			k.ready &^= netpoll.In
		case c.Err != nil:
			k.fail(c.Err) // kept, as in refused
		} // and the end is received once more, in the turn
		b.drop(k)
	}
}

// lend lends what was received ahead for k. The memory is not used again before the turn has ended: that is by a poll.
func (b *batch) lend(k *socket, most int) []byte {
	k.since = b.e.tick() // the poll that received them still had the time before its sleep
	a := &b.ahead[k.ahead]
	n := min(most, len(a.unread))
	p := a.unread[:n:n]
	if a.unread = a.unread[n:]; len(a.unread) == 0 {
		b.drop(k)
	}
	return p
}

// drop gives back the memory of k.
func (b *batch) drop(k *socket) {
	if k.ahead != 0 {
		b.ahead[k.ahead].unread = nil
		b.spare = append(b.spare, k.ahead)
		k.ahead = 0
	}
}

// gather takes head and p to be sent with the next flush, and reports whether it has. At most high bytes may be queued after it.
func (b *batch) gather(k *socket, head, p []byte, high int) bool {
	n := len(head) + len(p)
	if !b.gathers || n > min(few, high) {
		return false
	}
	if b.written++; b.written == 1 {
		b.began = b.e.s.Now()
	}
	if b.most < 2 {
		return false
	}
	if len(b.sends) >= b.most || len(b.bytes)+n > mostGathered {
		b.flush()
	}
	from := len(b.bytes)
	b.bytes = append(append(b.bytes, head...), p...)
	b.sends = append(b.sends, netpoll.Call{FD: int(k.fd), Send: true, P: b.bytes[from:]})
	b.senders = append(b.senders, k)
	k.state |= gathered
	return true
}

// settle flushes if bytes of k were gathered: what comes next depends on them.
func (k *socket) settle() {
	if k.state&gathered != 0 {
		k.source.e.batch.flush()
	}
}

// passEnd flushes, and finds out how many sends may wait for each other in the next pass.
func (b *batch) passEnd() {
	b.gathers = false
	b.flush()
	b.most = mostCalls
	if took := b.e.s.Now() - b.began; b.written > 0 && took > longest {
		b.most = min(mostCalls, int(longest*time.Duration(b.written)/took))
	}
	b.written = 0
}

// flush sends what was gathered.
func (b *batch) flush() {
	if len(b.sends) == 0 {
		return
	}
	b.calls.Do(b.sends)
	for i := range b.sends {
		k, c := b.senders[i], &b.sends[i]
		k.state &^= gathered
		if k.out != nil && k.out.err != nil {
			continue // a receive has failed meanwhile: that error is kept
		} else if c.Err != nil && c.Err != syscall.EAGAIN {
			k.fail(c.Err)
		} else if k.sent(c.N, len(c.P)); c.N < len(c.P) {
			o := k.outbound()
			o.since = k.since
			o.enqueue(c.P[c.N:])
		}
	}
	clear(b.senders)
	race.Spoil(b.bytes)
	b.sends, b.senders, b.bytes = b.sends[:0], b.senders[:0], b.bytes[:0]
}
