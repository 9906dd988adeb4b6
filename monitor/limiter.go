package monitor

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
)

// ConnLimiter bounds the connections of a service over all schedulers. An [Engine] acquires a place before it accepts a
// connection, and the connection releases it when its descriptor is closed, after lingering. A completion engine
// acquires a place only for an accept that has a connection waiting for it, so that a scheduler without clients takes
// no place from the others. Services make one of their MaxConns. All methods are for any goroutine. The nil ConnLimiter
// counts nothing and has no limit.
type ConnLimiter struct {
	max     int64
	open    atomic.Int64
	waiting atomic.Int32 // len(wakers)
	mu      sync.Mutex
	wakers  []*act.AtomicWaker // waiting for a place, each once
}

// NewConnLimiter returns a ConnLimiter with max places; 0 or less means no limit.
func NewConnLimiter(max int) *ConnLimiter { return &ConnLimiter{max: int64(max)} }

// Conns returns the number of places that are taken.
func (l *ConnLimiter) Conns() int {
	if l == nil {
		return 0
	}
	return int(l.open.Load())
}

// Max returns the number of places; 0 means no limit.
func (l *ConnLimiter) Max() int {
	if l == nil {
		return 0
	}
	return int(max(0, l.max))
}

// Acquire takes a place and reports whether one was free.
func (l *ConnLimiter) Acquire() bool {
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
func (l *ConnLimiter) Release() {
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
func (l *ConnLimiter) Await(w *act.AtomicWaker) {
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

func (l *ConnLimiter) wake() {
	l.mu.Lock()
	wakers := l.wakers
	l.wakers = nil
	l.waiting.Store(0)
	l.mu.Unlock()
	for _, w := range wakers {
		w.Wake()
	}
}
