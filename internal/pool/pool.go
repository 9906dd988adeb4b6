// Package pool calls functions on a bounded number of goroutines.
package pool

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
)

// Pool calls functions on a bounded number of goroutines, which start when there is work and end when there is none.
// Further functions wait in order.
//
// Execute is made for a thread that must not wait: it pushes onto a stack without locks, and nearly always that is all. Only
// for the first of several functions it wakes a goroutine, which sees to it that there are more if it is not enough. The
// mutex is only for the goroutines of the pool: a locked thread that parks on one pays two thread switches.
//
// One goroutine that has found nothing to do waits for a while in the kernel. To wake it takes one system call, where to start
// another one, or to wake one that waits in a channel, takes several.
type Pool struct {
	limit   atomic.Int32
	running atomic.Int32
	coming  atomic.Bool // a goroutine was started or woken, and has not looked for work yet
	given   inbox.Stack[func()]
	sleeper sleeper
	mu      sync.Mutex
	taken   *inbox.Node[func()] // from given, the oldest first
}

// patience is how long the sleeper waits for work.
const patience = 10_000_000 // ns

// New returns a Pool of at most limit goroutines.
func New(limit int) *Pool {
	p := &Pool{}
	p.limit.Store(int32(min(limit, math.MaxInt32)))
	return p
}

// Execute has f called. It never blocks. Any goroutine.
func (p *Pool) Execute(f func()) {
	p.given.Push(&inbox.Node[func()]{Of: f})
	if !p.given.Empty() { // else a goroutine has taken it already
		p.recruit()
	}
}

// Limit returns the present limit. Any goroutine.
func (p *Pool) Limit() int { return int(p.limit.Load()) }

// Running returns how many goroutines have something to do, or look for it. Any goroutine.
func (p *Pool) Running() int { return int(p.running.Load()) }

// Widen adds n to the limit. If it gets lower, goroutines beyond it end after their functions. Any goroutine.
func (p *Pool) Widen(n int) {
	p.limit.Add(int32(n))
	if !p.idle() {
		p.recruit()
	}
}

// recruit has one more goroutine work, if the limit allows it and none is coming.
func (p *Pool) recruit() {
	for p.coming.CompareAndSwap(false, true) {
		n := p.running.Load()
		if n < p.limit.Load() && p.running.CompareAndSwap(n, n+1) {
			if !p.sleeper.wake() {
				go p.work()
			}
			return
		}
		p.coming.Store(false)
		if p.running.Load() >= p.limit.Load() { // one that has ended since has seen that none was coming
			return
		}
	}
}

// Unlabel takes the labels of the calling goroutine away, in profiles (see runtime/pprof): it has the labels of the one that
// started it. Package inspect sets it; nil if it is not linked.
var Unlabel func()

// work calls functions until there are none, and then waits, if no other goroutine does. It is counted in running while it
// calls. Execute loads coming and running after pushing, and work takes functions after changing them: one sees the other.
func (p *Pool) work() {
	if Unlabel != nil {
		Unlabel() // it will call functions of others than the one for which it was started
	}
	counted := true
	defer func() { // even after a Goexit in a function
		if counted {
			p.leave()
		}
	}()
	for {
		p.coming.Store(false)
		for p.running.Load() <= p.limit.Load() {
			f := p.take()
			if f == nil {
				break
			}
			f()
		}
		counted = false
		p.leave()
		if !p.sleeper.wait(patience) {
			return
		}
		counted = true // by the one that has woken it
	}
}

// leave takes the calling goroutine out of running.
func (p *Pool) leave() {
	p.running.Add(-1)
	if !p.idle() {
		p.recruit()
	}
}

// take returns the next function, nil if there is none. It has another goroutine take what comes after it.
func (p *Pool) take() func() {
	f, more := p.pop()
	if more {
		p.recruit()
	}
	return f
}

func (p *Pool) pop() (f func(), more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = p.given.TakeAll()
	}
	n := p.taken
	if n == nil {
		return nil, false
	}
	p.taken = n.Next()
	return n.Of, p.taken != nil || !p.given.Empty()
}

func (p *Pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken == nil && p.given.Empty()
}
