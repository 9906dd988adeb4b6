package act

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
)

// Executor calls functions on goroutines other than the schedulers'. Execute may be called from any goroutine. It must not
// block, and must call every f once, sooner or later.
type Executor interface {
	Execute(f func())
}

// Reserve returns an Executor for functions that must not wait behind others: n goroutines of its own, in addition to
// the Offloads. A Config.Executor provides it by a method Reserve(n int) act.Executor for any goroutine; without that
// method, Reserve returns the Config.Executor itself. See Call.On. Any goroutine.
func (s *Scheduler) Reserve(n int) Executor {
	if n < 1 {
		panic("act: Reserve of no goroutines")
	}
	if r, ok := s.group.cfg.Executor.(interface{ Reserve(n int) Executor }); ok {
		return r.Reserve(n)
	}
	return s.group.cfg.Executor
}

// pool is the default Executor: at most limit goroutines, which are started when there is work and end when there is none.
// What they cannot take at once waits in order.
//
// Execute only pushes onto a stack without locks. Only the goroutines of the pool take the mutex: a locked thread that
// parks on one pays two thread switches.
type pool struct {
	limit   int32
	running atomic.Int32
	given   inbox.Stack[func()]
	mu      sync.Mutex
	taken   *inbox.Node[func()] // from given, the oldest first
}

func (p *pool) Execute(f func()) {
	p.given.Push(&inbox.Node[func()]{Of: f})
	p.recruit()
}

func newPool(limit int) *pool { return &pool{limit: int32(min(limit, math.MaxInt32))} }

// Reserve returns a second pool.
func (p *pool) Reserve(n int) Executor { return newPool(n) }

// recruit starts one more goroutine, if the limit allows it.
func (p *pool) recruit() {
	for n := p.running.Load(); n < p.limit; n = p.running.Load() {
		if p.running.CompareAndSwap(n, n+1) {
			go p.work()
			return
		}
	}
}

// work calls functions until there are none. Execute looks at running after pushing; work looks for functions once more
// after it has taken itself out of running. So one of them sees the other.
func (p *pool) work() {
	defer func() { // also after a Goexit in a function
		p.running.Add(-1)
		if !p.idle() {
			p.recruit()
		}
	}()
	for f := p.take(); f != nil; f = p.take() {
		f()
	}
}

func (p *pool) take() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = p.given.TakeAll()
	}
	n := p.taken
	if n == nil {
		return nil
	}
	p.taken = n.Next()
	return n.Of
}

func (p *pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken == nil && p.given.Empty()
}
