// Package lane carries bytes one way between a task and goroutines that block. The task's side never waits: it looks at
// atomic counters, uses channels that are known to be ready, and locks no mutex. It is woken when it can go on.
//
// A [Lane] to goroutines is filled by Put and End, and read by Read. One from goroutines is filled by Write and Finish, and
// emptied by Front and Discard. listener.Bridge makes a net.Conn of two.
//
// Bytes are copied to chunks. A long Write lends its bytes instead, and waits until the task has taken them: otherwise it
// would be woken for each chunk, and that costs far more than the copy.
package lane

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
)

const (
	// Chunks is how many chunks a lane from goroutines holds. One more is in the hands of its reader, and one in the hands
	// of a Write that waits. One to goroutines is Full with as many.
	Chunks = 2
	// atOnce is how many chunks Put takes at a time: as many as a connection lends bytes for. What a task leaves of those is
	// copied at the end of its turn, to memory that the collector has to find again.
	atOnce = 4
	// ChunkSize is how many bytes a chunk takes. A Write of more lends its bytes.
	ChunkSize = 16 << 10
	// Long is how many bytes Fill takes at a time.
	Long = 64 << 10
)

// ErrOver is returned by calls when the lane is over, and by Write after Finish.
var ErrOver = errors.New("lane: it is over")

// Lane is one direction. At rest it holds no chunk.
type Lane struct {
	// Demand has the task woken by a Read that finds nothing: see Wanted. It is set before the lane is used.
	Demand bool
	// Wait is that of the executor whose functions call Read and Write, see WaitOf. It is set before the lane is used.
	Wait Wait
	// AtEnd has f called soon, on the task's side. A Write whose bytes are taken is woken then: to wake several goroutines
	// one after the other costs less than to wake each by itself. It is set before the lane is used; nil means at once.
	AtEnd func(f func())

	over <-chan struct{}
	bell *act.AtomicWaker

	chunks   chan chunk
	n        atomic.Int32 // chunks that are in it: for Put at least as many, for Front at most
	front    chunk        // what Read, or Front, takes from
	inUse    bool         // Front has returned a part of a loan
	large    bool         // Fill has put long chunks in it
	wanted   atomic.Bool  // a Read waits
	filled   atomic.Bool  // the task waits for room
	finished atomic.Bool

	ended    chan struct{} // closed by End
	err      error         // of End
	hasEnded bool          // for the task's side

	calls sync.Mutex // one call of Read or Write at a time

	mu       sync.Mutex
	deadline time.Time // zero: none
	timer    atomic.Pointer[time.Timer]
	alarm    chan struct{} // the timer has fired
}

// Wait returns when until does, or earlier. In a simulated world, functions that block run as coroutines on the thread of
// the world, since goroutines could not be replayed. What would block is tried instead, and Wait lets the world go on
// before it is tried again. Everywhere else it is nil.
type Wait func(until func() bool)

// WaitOf returns how the functions of an executor wait.
func WaitOf(x act.Executor) Wait {
	if w, is := x.(interface{ Wait(until func() bool) }); is {
		return w.Wait
	}
	return nil
}

// To returns a lane to goroutines. over is closed when no call can succeed any more; nil means never. bell is the Waker of
// the task, which the task sets in each turn before it looks at the lane.
func To(over <-chan struct{}, bell *act.AtomicWaker) *Lane { return of(Chunks-1+atOnce, over, bell) }

// From returns a lane from goroutines. The parameters are as in To.
func From(over <-chan struct{}, bell *act.AtomicWaker) *Lane { return of(Chunks, over, bell) }

func of(most int, over <-chan struct{}, bell *act.AtomicWaker) *Lane {
	return &Lane{
		over: over, bell: bell,
		chunks: make(chan chunk, most), ended: make(chan struct{}), alarm: make(chan struct{}, 1),
	}
}

// Full reports whether there is no room for Put. The task is woken when the lane is empty, and can fill all of it in one
// turn, while the last chunk is read.
func (l *Lane) Full() bool {
	if l.n.Load() < Chunks {
		return false
	}
	l.filled.Store(true)
	return l.n.Load() > 0 // in this order: see accept
}

// Held returns how much memory the chunks take that are in it, about. It is for the task's side.
func (l *Lane) Held() int {
	if l.large {
		return int(l.n.Load()) * Long
	}
	return int(l.n.Load()) * ChunkSize
}

// Put copies bytes for Read and returns how many: all of p if it is not longer than 64 KiB. It panics if the lane is Full.
func (l *Lane) Put(p []byte) (n int) {
	if len(p) > 0 && l.n.Load() >= Chunks {
		panic("lane: Put without room")
	}
	for n < len(p) && int(l.n.Load()) < cap(l.chunks) {
		x := newChunk(p[n:])
		n += len(x.rest)
		l.n.Add(1)
		l.chunks <- x // there is room: n is lowered after a chunk was taken out
	}
	return n
}

// Fill has f read into memory that Read takes it from, up to 64 KiB: that is one copy less than Put. It returns what f has
// returned. It panics if the lane is Full.
func (l *Lane) Fill(f func(p []byte) (int, error)) (int, error) {
	if l.n.Load() >= Chunks {
		panic("lane: Fill without room")
	}
	m := longs.Get().(*[Long]byte)
	n, err := f(m[:])
	switch {
	case n > ChunkSize:
		l.n.Add(1)
		l.large = true
		l.chunks <- chunk{rest: m[:n], long: m}
		return n, err
	case n > 0: // a slow client takes no more memory than it has to
		l.Put(m[:n])
	}
	longs.Put(m)
	return n, err
}

// End ends the lane on the task's side: Read returns err after the last byte, and Write returns it at once. A later End
// does nothing. What Front has returned must not be looked at any more.
func (l *Lane) End(err error) {
	if !l.hasEnded {
		l.hasEnded, l.err = true, err
		close(l.ended)
		l.StopTimer() // nothing waits any more
		l.Discard(0)  // after a panic
	}
}

// Wanted reports whether a Read waits and nothing is on its way to it, of a lane with Demand.
func (l *Lane) Wanted() bool { return l.n.Load() == 0 && l.wanted.Load() } // in this order: see accept

// Front returns the rest of the first chunk that was written, or nil if there is none. It may be lent: so Discard has to
// follow in the same turn, and then it must not be looked at any more.
func (l *Lane) Front() []byte {
	for l.any() {
		o := l.front.loan
		if o == nil || l.inUse || o.state.CompareAndSwap(resting, used) {
			l.inUse = o != nil
			return l.front.rest
		}
	}
	return nil
}

// any reports whether there is a first chunk. A loan that was taken back is none.
func (l *Lane) any() bool {
	for {
		switch o := l.front.loan; {
		case l.front.rest == nil && l.n.Load() == 0:
			return false
		case l.front.rest == nil:
			l.front = <-l.chunks // there is one: n is raised after a chunk was put in
			l.n.Add(-1)
		case o != nil && !l.inUse && o.state.Load() == back:
			l.front = chunk{}
		default:
			return true
		}
	}
}

// Discard takes the first n bytes of Front, of which there must be as many.
func (l *Lane) Discard(n int) {
	if n > 0 || l.inUse {
		l.take(n)
	}
}

// Finished reports whether Finish was called and all that was written is discarded.
func (l *Lane) Finished() bool { return l.finished.Load() && !l.any() }

// Read reads at least one byte, and waits for it. After the last byte it returns the error of End. Any goroutine may call
// it; one call waits for the other.
func (l *Lane) Read(p []byte) (n int, err error) {
	l.calls.Lock()
	defer l.calls.Unlock()
	if err = l.awaitFront(len(p) == 0); err == nil && len(p) > 0 {
		n = copy(p, l.front.rest)
		l.take(n)
	}
	return n, err
}

// Use is Read without a copy: f takes as many of the bytes as it returns.
func (l *Lane) Use(f func(p []byte) (n int)) error {
	l.calls.Lock()
	defer l.calls.Unlock()
	err := l.awaitFront(false)
	if err == nil {
		l.take(f(l.front.rest))
	}
	return err
}

// awaitFront waits for bytes, unless none are wanted.
func (l *Lane) awaitFront(none bool) error {
	for {
		switch {
		case IsClosed(l.over):
			return ErrOver
		case l.passed():
			return os.ErrDeadlineExceeded
		case none, l.front.rest != nil:
			return nil
		}
		if err := l.await(); err != nil {
			return err
		}
	}
}

// await waits for a chunk, or for another cause to look again. The error is that of End.
func (l *Lane) await() error {
	if l.Demand && l.n.Load() == 0 {
		l.wanted.Store(true)
		defer l.wanted.Store(false)
		l.bell.Wake()
	}
	if l.Wait != nil {
		if l.Wait(l.readable); IsClosed(l.over) || !l.readable() {
			return nil
		}
	}
	select {
	case x := <-l.chunks:
		l.accept(x)
	case <-l.ended:
		select {
		case x := <-l.chunks: // it was put before
			l.accept(x)
		default:
			return l.err
		}
	case <-l.alarm:
	case <-l.over:
	}
	return nil
}

func (l *Lane) accept(x chunk) {
	l.front = x
	l.wanted.Store(false) // before n says that nothing is on its way
	if l.n.Add(-1) == 0 && l.filled.Load() {
		l.filled.Store(false)
		l.bell.Wake()
	}
}

// take takes the first n bytes of front.
func (l *Lane) take(n int) {
	x := &l.front
	x.rest = x.rest[n:]
	all := len(x.rest) == 0
	switch {
	case x.loan != nil:
		l.inUse = false
		if all = x.loan.use(n, all); all && l.AtEnd != nil {
			l.AtEnd(x.loan.giveBack)
		} else if all {
			x.loan.giveBack()
		}
	case all:
		x.free()
	}
	if all {
		l.front = chunk{}
	}
}

// Write has the task take all of p: it copies p, and waits while there is no room, or lends it if it is more than a chunk takes,
// and waits until it is taken. An error comes with how much was taken before. Any goroutine may call it; one call waits for the
// other.
func (l *Lane) Write(p []byte) (written int, err error) {
	l.calls.Lock()
	defer l.calls.Unlock()
	for {
		switch {
		case IsClosed(l.over), l.finished.Load():
			return written, ErrOver
		case IsClosed(l.ended):
			return written, l.err
		case l.passed():
			return written, os.ErrDeadlineExceeded
		case written == len(p):
			return written, nil
		}
		if l.Wait != nil && !l.writable() {
			l.Wait(l.writable)
			continue
		}
		var x chunk
		if rest := p[written:]; len(rest) <= ChunkSize {
			x = newChunk(rest)
		} else {
			x = chunk{rest: rest, loan: &loan{returned: make(chan struct{}, 1)}}
		}
		select {
		case l.chunks <- x:
			l.n.Add(1)
			l.bell.Wake()
			if x.loan == nil {
				written += len(x.rest)
			} else {
				written += l.awaitReturn(x.loan)
			}
			continue
		case <-l.alarm:
		case <-l.ended:
		case <-l.over:
		}
		x.free()
	}
}

// awaitReturn waits until the task has taken the lent bytes, or until Write has another cause to return: then it takes
// back the rest. It returns how much was taken.
func (l *Lane) awaitReturn(o *loan) int {
	for {
		for back := func() bool { return len(o.returned) > 0 || l.closed() }; l.Wait != nil && !back(); {
			l.Wait(back)
		}
		select {
		case <-o.returned:
			return o.taken
		case <-l.alarm:
			if !l.passed() {
				continue
			}
		case <-l.ended:
		case <-l.over:
		}
		return o.takeBack()
	}
}

// What calls wait for, but for deadlines: those are on the system's clock, which no world has.

func (l *Lane) readable() bool { return len(l.chunks) > 0 || l.closed() }
func (l *Lane) writable() bool { return len(l.chunks) < cap(l.chunks) || l.closed() }
func (l *Lane) closed() bool   { return IsClosed(l.ended) || IsClosed(l.over) }

// Finish says that nothing more is written, after the calls of Write that are under way. It returns the error of End, or
// ErrOver, if that is too late. Any goroutine may call it.
func (l *Lane) Finish() error {
	l.calls.Lock()
	defer l.calls.Unlock()
	switch {
	case IsClosed(l.over):
		return ErrOver
	case IsClosed(l.ended):
		return l.err
	}
	l.finished.Store(true)
	l.bell.Wake()
	return nil
}

// SetDeadline sets the deadline of Read and Write, on the system's clock, also of calls that wait. They return
// os.ErrDeadlineExceeded then. The zero Time means none. Any goroutine may call it.
func (l *Lane) SetDeadline(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.StopTimer()
	select {
	case <-l.alarm: // of the old one
	default:
	}
	l.deadline = time.Time{}
	if at.IsZero() {
		return
	}
	left := time.Until(at)
	l.deadline = time.Now().Add(left) // on the monotonic clock, as the timer
	l.timer.Store(time.AfterFunc(left, l.ring))
	if IsClosed(l.ended) || IsClosed(l.over) {
		l.StopTimer() // what ended it may not have seen the timer
	}
}

func (l *Lane) passed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.deadline.IsZero() && !time.Now().Before(l.deadline)
}

// StopTimer stops the timer of a deadline. It is called when the lane is over. Any goroutine may call it, also the task.
func (l *Lane) StopTimer() {
	if t := l.timer.Swap(nil); t != nil {
		t.Stop()
	}
}

// Alarm returns the channel that gets an element when a deadline passes, for a caller that waits in place of Write.
func (l *Lane) Alarm() <-chan struct{} { return l.alarm }

func (l *Lane) ring() {
	select {
	case l.alarm <- struct{}{}:
	default:
	}
}

// IsClosed reports whether a channel that is only ever closed has been.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// chunk is a part of the bytes on their way.
type chunk struct {
	rest []byte // nil: there is no chunk
	// Where it lies: one of these.
	memory *[ChunkSize]byte
	long   *[Long]byte
	loan   *loan
}

var (
	chunks = sync.Pool{New: func() any { return new([ChunkSize]byte) }}
	longs  = sync.Pool{New: func() any { return new([Long]byte) }}
)

func (x *chunk) free() {
	switch {
	case x.memory != nil:
		chunks.Put(x.memory)
	case x.long != nil:
		longs.Put(x.long)
	}
}

// newChunk takes as much of p as there is room for.
func newChunk(p []byte) chunk {
	m := chunks.Get().(*[ChunkSize]byte)
	return chunk{rest: m[:copy(m[:], p)], memory: m}
}

// loan is a slice that a Write has lent to the task.
//
//	        Front         Discard, all is taken
//	resting ─────▶ used ────────────────────────▶ back
//	   │   ◀───────  │                             ▲
//	   │    Discard  │ taken back: Write waits     │
//	   │             │ for Discard                 │
//	   └─────────────┴─────────────────────────────┘
//	      taken back
type loan struct {
	state    atomic.Int32
	taken    int           // bytes; of the task, until it is back
	returned chan struct{} // has room: the task uses it no more
}

const (
	resting int32 = iota
	used          // in a turn
	back
)

// use ends the use in a turn, which has taken n bytes. It reports whether the task is done with the loan: then giveBack
// follows.
func (o *loan) use(n int, all bool) bool {
	o.taken += n
	if !all && o.state.CompareAndSwap(used, resting) {
		return false
	}
	o.state.Store(back)
	return true
}

// giveBack wakes the Write.
func (o *loan) giveBack() { o.returned <- struct{}{} }

// takeBack ends the loan, when the turn that uses it has done so. It returns how much was taken.
func (o *loan) takeBack() int {
	if o.state.Swap(back) == used {
		<-o.returned
	}
	return o.taken
}
