package act

import (
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/inbox"
)

// Executor runs functions off the schedulers' threads. Execute may be called from any goroutine; it
// must neither block nor lose f, and it must run everything it is given even if that takes its time.
type Executor interface {
	Execute(f func())
}

// Reserve returns an Executor for work that must not wait behind that of others: n goroutines of its own, beside the
// Offloads. A Config.Executor provides it by a method Reserve(n int) act.Executor for any goroutine; without that
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

// pool is the Executor of a Group that is given none: at most limit goroutines, made when there is work
// and gone when there is none. What they cannot take at once waits in order.
//
// A scheduler's thread that gives work only pushes onto a stack without locks; the mutex is among the
// goroutines of the pool, since a locked thread that parks on one pays two thread switches.
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

// Reserve makes a second pool: goroutines are the same everywhere, what is scarce are the places.
func (p *pool) Reserve(n int) Executor { return &pool{limit: int32(n)} }

// recruit starts one goroutine more, if the limit allows it.
func (p *pool) recruit() {
	for n := p.running.Load(); n < p.limit; n = p.running.Load() {
		if p.running.CompareAndSwap(n, n+1) {
			go p.work()
			return
		}
	}
}

// work runs what there is, and leaves when there is nothing. Who gives work looks at running after
// pushing, who leaves looks at the work after taking itself out of running: one of them sees the other.
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
