package monitor

import (
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
)

// Account counts the connections of a service over all schedulers, from accept to the close of the
// descriptor. All its methods are for any goroutine; the nil Account has always room.
type Account struct {
	max     int64
	open    atomic.Int64
	waiting atomic.Int32
	mu      sync.Mutex
	wakers  []act.Remote
}

// NewAccount returns one with at most max places; 0 or less does not limit.
func NewAccount(max int) *Account { return &Account{max: int64(max)} }

// Open is how many places are taken.
func (a *Account) Open() int { return int(a.open.Load()) }

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

// Await keeps r and wakes it when a place has become free, at once if there is one by now. It is good
// for once.
func (a *Account) Await(r act.Remote) {
	a.mu.Lock()
	a.wakers = append(a.wakers, r)
	a.waiting.Store(int32(len(a.wakers)))
	a.mu.Unlock()
	if a.open.Load() < a.max { // a Leave before the Store has not seen r
		a.wake()
	}
}

func (a *Account) wake() {
	a.mu.Lock()
	wakers := a.wakers
	a.wakers = nil
	a.waiting.Store(0)
	a.mu.Unlock()
	for _, r := range wakers {
		r.Wake()
	}
}
