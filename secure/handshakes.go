package secure

import (
	"container/list"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/pool"
	"github.com/daimon-go/daimon/internal/summary"
)

// Handshakes bounds the CPU time and the memory that handshakes of TLS take. All filters with the same Handshakes share its
// bounds; all filters with nil share the bounds of one zero Handshakes. The zero Handshakes is good for servers. It must not be
// changed once it is in use.
//
// Handshakes of servers that fail are counted, and logged in one line a second for all schedulers, with the last error.
type Handshakes struct {
	// Slots is how many handshakes are computed at the same time, on goroutines. 0 means one less than GOMAXPROCS, but at
	// least 1: so a flood of handshakes leaves time to the connections that are established. A handshake has a slot only
	// while it computes, not while it waits for its peer, and for at most 5 ms at a time: what takes longer, such as a
	// GetCertificate that asks another machine, goes on without one. It has to return when the context of its
	// ClientHelloInfo ends.
	Slots int
	// Waiting bounds the handshakes of servers that are under way on each scheduler, most of which wait for their peers. With
	// one more, the one that has waited longest for its peer fails with [ErrTooMany]. 0 means 1024. One that waits takes
	// about 25 KiB, and up to 128 KiB for a peer that sends the longest ClientHello that crypto/tls reads. If the config asks
	// for client certificates, of which crypto/tls reads 256 KiB, it takes up to 350 KiB, and about 10 ms of CPU more at its
	// end. Limits of the connection do not bound this.
	Waiting int

	once   sync.Once
	free   slots
	bodies bodies
}

// shared is that of filters without one.
var shared Handshakes

// driver makes the steps of a handshake.
type driver interface {
	// step begins a step, or goes on with it. Done means that it has ended, and Failed that it panicked.
	step(t *act.Task) act.Directive
	act.Describer // of a step
	// Close ends a handshake that is not over.
	io.Closer
}

func (h *Handshakes) driver(x *handshake) driver {
	if caches.Get(x.conn.Scheduler()).simulated {
		return &inTurns{body: coro.New(func(co *coro.Co) error {
			x.pause = co.Yield
			x.run()
			return nil
		})}
	}
	return &onGoroutines{x: x}
}

// inTurns is the driver of simulations, in which nothing may happen on other threads: it has a coroutine of its scheduler.
type inTurns struct{ body act.Action }

func (d *inTurns) step(t *act.Task) act.Directive {
	v := d.body.Act(t)
	if v == act.Yield { // a pause
		return act.Done
	}
	return v
}

func (d *inTurns) Describe(to *act.Description) { to.Of(d.body) }

func (d *inTurns) Close() error { return d.body.(io.Closer).Close() }

// onGoroutines is the driver that computes on goroutines: each step is a function that resumes a coroutine.
type onGoroutines struct {
	x     *handshake
	call  *act.Call[struct{}] // the step under way
	body  *body               // from the first step to the end of the handshake
	state atomic.Int32
	slot  atomic.Bool // the step under way has had a slot
}

const (
	pausing   int32 = iota // the coroutine belongs to the scheduler's thread
	computing              // it belongs to the step
	closed                 // the step has to end it
)

func (d *onGoroutines) step(t *act.Task) act.Directive {
	if d.call == nil {
		d.state.Store(computing)
		d.slot.Store(false)
		d.call = &act.Call[struct{}]{F: d.advance, On: d.x.of.slots()}
	}
	v := d.call.Act(t)
	if v.Finished() {
		d.call = nil
	}
	return v
}

func (d *onGoroutines) Describe(to *act.Description) {
	if d.slot.Load() {
		to.WaitsFor("a step of its TLS handshake, on another goroutine")
	} else {
		to.WaitsFor("a slot to compute its TLS handshake")
	}
}

// advance resumes the coroutine until its next pause.
func (d *onGoroutines) advance() (none struct{}, err error) {
	d.slot.Store(true)
	defer d.settle() // even after a panic
	if d.state.Load() == closed {
		return none, nil // before the step had a slot
	}
	if d.body == nil {
		d.body = d.x.of.bodies.take(d.x)
	}
	d.body.resume()
	return none, nil
}

// settle ends a step.
func (d *onGoroutines) settle() {
	if d.x.over {
		d.end(true)
	}
	if !d.state.CompareAndSwap(computing, pausing) {
		d.end(false)
	}
}

// end gives the coroutine back, if there is one.
func (d *onGoroutines) end(over bool) {
	if b := d.body; b != nil {
		d.body = nil
		d.x.of.bodies.give(b, over)
	}
}

func (d *onGoroutines) Close() error {
	if d.state.Swap(closed) == pausing && d.body != nil {
		go d.end(false) // not here: this thread is the scheduler's
	}
	if d.call != nil {
		return d.call.Close()
	}
	return nil
}

// patience is how long a step may have a slot.
const patience = 5 * time.Millisecond

// slots is the Executor of steps: a pool with a goroutine for each slot. It is not the Group's, so that a flood of handshakes
// delays no other function.
type slots struct {
	*pool.Pool
	steps atomic.Uint32
}

func (h *Handshakes) slots() *slots {
	h.once.Do(func() {
		n := h.Slots
		if n <= 0 {
			n = max(1, runtime.GOMAXPROCS(0)-1)
		}
		h.free.Pool = pool.New(n)
	})
	return &h.free
}

// Execute calls f on a goroutine that has a slot, for as long as patience.
func (h *slots) Execute(f func()) { h.execute(f, patience) }

func (h *slots) execute(f func(), atMost time.Duration) {
	h.Pool.Execute(func() {
		late := time.AfterFunc(atMost, func() { h.Widen(1) }) // another goroutine takes the place of one that is late
		defer func() {
			if !late.Stop() {
				h.Widen(-1)
			}
		}()
		f()
		// A scheduler that has woken up, and finds no processor, would otherwise wait for up to 10 ms while steps are queued. To
		// yield after each of them would cost more thread switches.
		if h.steps.Add(1)%4 == 0 {
			runtime.Gosched()
		}
	})
}

// queue is the handshakes of one Handshakes that are under way on one scheduler.
type queue struct {
	n       int       // all of them
	waiting list.List // handshakes that do not compute; the first has waited for its peer for longest
	of      *Handshakes
	s       *act.Scheduler

	failed, dropped uint64
}

// byHandshakes has the queues of one scheduler.
type byHandshakes map[*Handshakes]*queue

var queues = act.NewLocal(func(*act.Scheduler) byHandshakes { return byHandshakes{} })

// Counts implements facts.Counter.
func (all byHandshakes) Counts(add func(name string, n uint64)) {
	for _, q := range all {
		add("handshakes", uint64(q.n))
		add("handshakes_waiting", uint64(q.waiting.Len())) // for their peers
		add("handshakes_failed_total", q.failed)
		add("handshakes_dropped_total", q.dropped)
	}
}

// enter counts x. If there are too many, the one that has waited for longest is given up: x itself, if all others compute.
func (x *handshake) enter(s *act.Scheduler) {
	all := queues.Get(s)
	q := all[x.of]
	if q == nil {
		q = &queue{of: x.of, s: s}
		all[x.of] = q
	}
	q.n++
	x.queue = q
	x.wait()
	if q.n > q.bound() {
		q.drop()
	}
}

func (q *queue) bound() int {
	if q.of.Waiting > 0 {
		return q.of.Waiting
	}
	return 1024
}

// wait puts x after the handshakes that wait already.
func (x *handshake) wait() {
	if x.queue != nil {
		x.place = x.queue.waiting.PushBack(x)
	}
}

// compute takes x out of the ones that wait: a computation is not given up.
func (x *handshake) compute() {
	if x.place != nil {
		x.queue.waiting.Remove(x.place)
		x.place = nil
	}
}

func (x *handshake) leave() {
	if x.compute(); x.queue != nil && !x.left {
		x.left = true
		x.queue.n--
	}
}

func (q *queue) drop() {
	x := q.waiting.Front().Value.(*handshake)
	x.leave()
	x.crowded = true
	x.waker.Wake()
	q.dropped++
	failures.Add(q.s, func(f *failed) { f.dropped, f.bound = f.dropped+1, q.bound() })
}

// note counts a failure of a server's handshake.
func (x *handshake) note(err error) {
	if q := x.queue; q != nil {
		q.failed++
		failures.Add(q.s, func(f *failed) { f.n, f.last = f.n+1, err })
	}
}

// failed is what failed in a second.
type failed struct {
	n, dropped, bound int
	last              error
}

var failures = summary.New(func(log *zap.Logger, f failed) {
	if f.dropped > 0 {
		log.Warn("TLS handshakes were given up for newer ones", zap.Int("in a second", f.dropped), zap.Int("under way at most", f.bound))
	}
	if f.n > 0 {
		log.Info("TLS handshakes have failed", zap.Int("in a second", f.n), zap.NamedError("the last", f.last))
	}
})
