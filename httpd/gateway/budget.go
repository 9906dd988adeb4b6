package gateway

import (
	"sync/atomic"
	"time"
)

// budget bounds the retries of a group to a share of its requests in the last 10 s. All schedulers use it. A few counts may be
// lost when a second begins, since nothing is locked.
type budget struct {
	share, floor int
	seconds      [window]struct {
		number         atomic.Int64 // which second the counts are of
		asked, retried atomic.Int64
	}
}

const (
	window       = 10 // seconds
	leastRetries = 10 // in a window, however few requests there are
)

// second moves to the second of now, and returns its number and its place.
func (b *budget) second(now time.Duration) (number, place int64) {
	number = int64(now/time.Second) + 1
	place = number % window
	x := &b.seconds[place]
	if was := x.number.Load(); was < number && x.number.CompareAndSwap(was, number) {
		x.asked.Store(0)
		x.retried.Store(0)
	}
	return number, place
}

// asked counts a request.
func (b *budget) asked(now time.Duration) {
	_, place := b.second(now)
	b.seconds[place].asked.Add(1)
}

// retry reports whether there may be one more retry, and counts it.
func (b *budget) retry(now time.Duration) bool {
	number, place := b.second(now)
	var asked, retried int64
	for i := range b.seconds {
		if x := &b.seconds[i]; x.number.Load() > number-window {
			asked += x.asked.Load()
			retried += x.retried.Load()
		}
	}
	if retried >= int64(b.floor)+asked*int64(b.share)/100 {
		return false
	}
	b.seconds[place].retried.Add(1)
	return true
}
