package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
)

// Limiter bounds the connections of a service over all schedulers. An [Engine] acquires a place before it accepts a
// connection, and the connection releases it when its descriptor is closed, after lingering. Services make one of their
// MaxConns. All methods are for any goroutine. The nil Limiter counts nothing and has no limit.
type Limiter struct {
	max     int64
	open    atomic.Int64
	waiting atomic.Int32 // len(wakers)
	mu      sync.Mutex
	wakers  []*act.AtomicWaker // waiting for a place, each once
}

// NewLimiter returns a Limiter with max places; 0 or less means no limit.
func NewLimiter(max int) *Limiter { return &Limiter{max: int64(max)} }

// Conns returns the number of places that are taken.
func (l *Limiter) Conns() int {
	if l == nil {
		return 0
	}
	return int(l.open.Load())
}

// Max returns the number of places; 0 means no limit.
func (l *Limiter) Max() int {
	if l == nil {
		return 0
	}
	return int(max(0, l.max))
}

// Acquire takes a place and reports whether one was free.
func (l *Limiter) Acquire() bool {
	if l == nil {
		return true
	}
	for {
		n := l.open.Load()
		if l.max > 0 && n >= l.max {
			return false
		}
		if l.open.CompareAndSwap(n, n+1) { // never above max, not even for a moment: a refused caller waits
			return true
		}
	}
}

// Release gives a place back and wakes all Wakers of Await.
func (l *Limiter) Release() {
	if l == nil {
		return
	}
	l.open.Add(-1)
	if l.waiting.Load() > 0 {
		l.wake()
	}
}

// Await wakes w once when a place is free, at once if one is free now. Calling it again with the same w, set again,
// takes no further memory.
func (l *Limiter) Await(w *act.AtomicWaker) {
	if l == nil {
		w.Wake()
		return
	}
	l.mu.Lock()
	if !slices.Contains(l.wakers, w) {
		l.wakers = append(l.wakers, w)
	}
	l.waiting.Store(int32(len(l.wakers)))
	l.mu.Unlock()
	if l.max <= 0 || l.open.Load() < l.max { // a Release before the Store has not seen w
		l.wake()
	}
}

func (l *Limiter) wake() {
	l.mu.Lock()
	wakers := l.wakers
	l.wakers = nil
	l.waiting.Store(0)
	l.mu.Unlock()
	for _, w := range wakers {
		w.Wake()
	}
}
