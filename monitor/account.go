package monitor

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
)

// Account counts the connections of a service over all schedulers, from accept to the close of the
// descriptor. All its methods are for any goroutine; the nil Account counts nothing and has always room.
type Account struct {
	max     int64
	open    atomic.Int64
	waiting atomic.Int32 // len(bells)
	mu      sync.Mutex
	bells   []*act.AtomicWaker // of those who wait, each once
}

// NewAccount returns one with at most max places; 0 or less does not limit.
func NewAccount(max int) *Account { return &Account{max: int64(max)} }

// Open is how many places are taken.
func (a *Account) Open() int {
	if a == nil {
		return 0
	}
	return int(a.open.Load())
}

// Enter takes a place and reports whether there was one.
func (a *Account) Enter() bool {
	if a == nil {
		return true
	}
	for {
		n := a.open.Load()
		if a.max > 0 && n >= a.max {
			return false
		}
		if a.open.CompareAndSwap(n, n+1) { // never above max, not even for a moment: who is refused waits
			return true
		}
	}
}

// Leave gives a place back and wakes who waits for one.
func (a *Account) Leave() {
	if a == nil {
		return
	}
	a.open.Add(-1)
	if a.waiting.Load() > 0 {
		a.wake()
	}
}

// Await has b rung once when a place has become free, at once if there is one by now. Whoever comes again
// before that, with the same AtomicWaker set again, takes no more room.
func (a *Account) Await(b *act.AtomicWaker) {
	if a == nil {
		b.Wake()
		return
	}
	a.mu.Lock()
	if !slices.Contains(a.bells, b) {
		a.bells = append(a.bells, b)
	}
	a.waiting.Store(int32(len(a.bells)))
	a.mu.Unlock()
	if a.max <= 0 || a.open.Load() < a.max { // a Leave before the Store has not seen b
		a.wake()
	}
}

func (a *Account) wake() {
	a.mu.Lock()
	bells := a.bells
	a.bells = nil
	a.waiting.Store(0)
	a.mu.Unlock()
	for _, b := range bells {
		b.Wake()
	}
}
