package secure

import (
	"container/list"
	"io"
	"iter"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
)

// Handshakes bounds what handshakes cost. Filters share the bounds if they have the same Handshakes, and all that have none
// share one of the process. The zero Handshakes is good for servers. It must not be changed once it is in use.
type Handshakes struct {
	// Slots is how many handshakes are computed at the same time, on goroutines. 0 means one less than GOMAXPROCS, but at
	// least 1: so a flood of handshakes leaves time to the connections that are established. A handshake has a slot only
	// while it computes, not while it waits for its peer, and for at most 5 ms at a time: what takes longer, such as a
	// GetCertificate that asks another machine, goes on without one.
	Slots int
	// Waiting bounds the handshakes that are under way on each scheduler, most of which wait for their peers. One more
	// makes the oldest fail with [ErrTooMany]. A second in which that happens is one line in the log. 0 means 1024. One that
	// waits takes about 25 KiB, and up to 128 KiB for a peer that sends the longest ClientHello that crypto/tls reads.
	Waiting int
	// OnReactor computes handshakes in coroutines on the scheduler's own thread, which they hold up, and not on goroutines.
	// Then Slots means nothing. It is for simulations and tests, in which nothing may happen on other threads.
	OnReactor bool

	once    sync.Once
	free    slots
	dropped atomic.Uint64
}

// shared is that of filters without one.
var shared Handshakes

// Dropped returns how many handshakes failed with [ErrTooMany] so far. Any goroutine.
func (h *Handshakes) Dropped() uint64 { return h.dropped.Load() }

// driver makes the steps of a handshake.
type driver interface {
	// step begins a step, or goes on with it. Done means that it has ended, and Failed that it panicked.
	step(t *act.Task) act.Directive
	// Close ends a handshake that is not over.
	io.Closer
}

func (h *Handshakes) driver(x *handshake) driver {
	if h.OnReactor {
		return &onReactor{body: coro.New(func(co *coro.Co) error {
			x.pause = co.Yield
			x.run()
			return nil
		})}
	}
	return &offThread{x: x}
}

// onReactor is the driver that has a coroutine of its scheduler.
type onReactor struct{ body act.Action }

func (d *onReactor) step(t *act.Task) act.Directive {
	v := d.body.Act(t)
	if v == act.Yield { // a pause
		return act.Done
	}
	return v
}

func (d *onReactor) Close() error { return d.body.(io.Closer).Close() }

// offThread is the driver that computes on goroutines: each step is a function that resumes a coroutine. The coroutine is
// made and resumed on goroutines without a thread of their own only, as package iter demands.
type offThread struct {
	x      *handshake
	call   *act.Call[struct{}] // the step under way
	resume func() (struct{}, bool)
	stop   func()
	state  atomic.Int32
}

const (
	pausing   int32 = iota // the coroutine belongs to the scheduler's thread
	computing              // it belongs to the step
	closed                 // the step has to end it
)

func (d *offThread) step(t *act.Task) act.Directive {
	if d.call == nil {
		d.state.Store(computing)
		d.call = &act.Call[struct{}]{F: d.advance, On: d.x.of.slots()}
	}
	v := d.call.Act(t)
	if v.Finished() {
		d.call = nil
	}
	return v
}

// advance resumes the coroutine until its next pause.
func (d *offThread) advance() (none struct{}, err error) {
	switch {
	case d.state.Load() == closed: // before the step had a slot
	case d.resume == nil:
		d.resume, d.stop = iter.Pull(d.coroutine)
		fallthrough
	default:
		d.resume()
	}
	if !d.state.CompareAndSwap(computing, pausing) && d.stop != nil {
		d.stop()
	}
	return none, nil
}

func (d *offThread) coroutine(yield func(struct{}) bool) {
	stopped := false
	d.x.pause = func() error {
		if stopped || !yield(struct{}{}) {
			stopped = true
			return net.ErrClosed
		}
		return nil
	}
	d.x.run()
}

func (d *offThread) Close() error {
	if d.state.Swap(closed) == pausing && d.stop != nil && !d.x.over {
		go d.stop() // not here: this thread is the scheduler's
	}
	if d.call != nil {
		return d.call.Close()
	}
	return nil
}

// patience is how long a step may have a slot.
const patience = 5 * time.Millisecond

// slots is the Executor of steps: a channel with room for as many values as there are slots. It is not the Group's, so that a
// flood of handshakes delays no other function.
type slots chan struct{}

func (h *Handshakes) slots() slots {
	h.once.Do(func() {
		n := h.Slots
		if n <= 0 {
			n = max(1, runtime.GOMAXPROCS(0)-1)
		}
		h.free = make(slots, n)
	})
	return h.free
}

// Execute calls f on a goroutine that has a slot, for as long as patience.
func (h slots) Execute(f func()) { h.execute(f, patience) }

func (h slots) execute(f func(), atMost time.Duration) {
	go func() {
		h <- struct{}{}
		release := sync.OnceFunc(func() { <-h })
		defer release()
		defer time.AfterFunc(atMost, release).Stop()
		f()
		// The next step would inherit the time slice of this one, and the one behind it again. A reactor that has woken up
		// would have to wait for all of them, if it finds no processor.
		runtime.Gosched()
	}()
}

// line is the handshakes of one Handshakes that are under way on one scheduler, the oldest first.
type line struct {
	under   list.List
	of      *Handshakes
	s       *act.Scheduler
	dropped int // since the last line in the log
	timer   act.Timer
}

var lines = act.NewLocal(func(*act.Scheduler) map[*Handshakes]*line { return map[*Handshakes]*line{} })

// enter puts x at the end of its line.
func (x *handshake) enter(s *act.Scheduler) {
	all := lines.Get(s)
	l := all[x.of]
	if l == nil {
		l = &line{of: x.of, s: s}
		all[x.of] = l
	}
	x.line, x.place = l, l.under.PushBack(x)
	if l.under.Len() > l.most() {
		l.drop()
	}
}

func (l *line) most() int {
	if l.of.Waiting > 0 {
		return l.of.Waiting
	}
	return 1024
}

func (x *handshake) leave() {
	if x.place != nil {
		x.line.under.Remove(x.place)
		x.place = nil
	}
}

// drop makes the oldest fail.
func (l *line) drop() {
	x := l.under.Front().Value.(*handshake)
	x.leave()
	x.crowded = true
	x.waker.Wake()
	l.of.dropped.Add(1)
	if l.dropped++; !l.timer.Armed() {
		l.s.CallAt(&l.timer, l.s.Now()+time.Second, l)
	}
}

// Expire logs what was dropped in a second.
func (l *line) Expire() {
	l.s.Logger().Warn("TLS handshakes were given up for newer ones",
		zap.Int("in a second", l.dropped), zap.Int("under way at most", l.most()))
	l.dropped = 0
}
