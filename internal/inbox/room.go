package inbox

import (
	"sync"
	"sync/atomic"
)

// Room is where producers wait that have found a Ring full: goroutines, and tasks by functions that wake them. The consumer calls
// Announce after it has popped values or closed the ring. The zero Room is ready. A Room must not be copied.
//
// A waiter registers before it looks at the ring again, and Announce looks for waiters after the ring has
// changed, so one of them sees the other.
type Room struct {
	mu      sync.Mutex
	changed chan struct{} // closed by the next Announce; nil: no goroutine waits
	wakers  []func()
	waiting atomic.Bool
}

// Wait blocks until full returns false. It calls full at once and after each Announce.
func (r *Room) Wait(full func() bool) {
	for {
		r.mu.Lock()
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.waiting.Store(true)
		r.mu.Unlock()
		if !full() {
			return
		}
		<-changed
	}
}

// Add has the next Announce call wake, once. It calls wake itself if full returns false.
func (r *Room) Add(wake func(), full func() bool) {
	r.mu.Lock()
	r.wakers = append(r.wakers, wake)
	r.waiting.Store(true)
	r.mu.Unlock()
	if !full() {
		wake() // it came between
	}
}

// Announce wakes all that wait: there may be room again, or none for ever. It takes the lock only if something waits.
func (r *Room) Announce() {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.Store(false)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	for _, wake := range r.wakers {
		wake()
	}
	clear(r.wakers)
	r.wakers = r.wakers[:0]
}
