// Package budget bounds the memory that the connections of a scheduler hold between turns: bytes that are queued and
// buffered for them. The policy is documented at listener.Budget.
//
//	            the budget is reached                 5/4 of it is exceeded
//	reading ───────────────────────────▶ paused ─────────────────────────────▶ the worst are evicted at the end of the turn
//	   ▲                                    │ a poll each 100 ms evicts connections that have not moved for 1 s, after
//	   └─────── less than 7/8 of it ────────┘ 5 s of such pauses others too; 64 of the waiting ones may read once
package budget

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/resource"
	"github.com/daimon-go/daimon/internal/summary"
)

// Owner is a connection for which something is held.
type Owner interface {
	// Held returns how many bytes are held for it in all, and for how long no byte has gone either way, 0 if that is not known.
	Held() (bytes int, still time.Duration)
	// Flush tries to send the queued bytes; the kernel may not have reported yet that there is room.
	Flush() error
	// Abort ends the connection. All of its Accounts are given back before it returns.
	Abort()
	// Peer returns the address of the other end, or "".
	Peer() string
}

// Holder is a monitor.Stream that has an Account of its own, for queued bytes.
type Holder interface {
	// HeldFor says for whom that is held, and returns how much memory it takes.
	HeldFor(o Owner) (bytes int)
	// Taken reports whether the kernel has ever taken all that was queued.
	Taken() bool
}

// Sharer is a monitor.Stream that refers to Messages.
type Sharer interface {
	// Parts returns the sum of the parts of its references.
	Parts() int
}

// Account is the memory that a part of a connection holds. The zero Account holds nothing.
type Account struct {
	Owner Owner // set before Set, if that is to hold something
	bytes int
	place int // in Budget.accounts, from 1; 0: it holds nothing
}

// Bytes returns how many bytes it holds.
func (a *Account) Bytes() int { return a.bytes }

const (
	// pollEvery is how often a scheduler that has paused polls for connections to evict, and lets waiting ones read.
	pollEvery = 100 * time.Millisecond
	// stillFor is how long no byte must have gone either way on a connection that is evicted then.
	stillFor = time.Second
	// patience is how long a pause may last, or several that follow each other within that time. Then all connections may be
	// evicted.
	patience = 5 * time.Second
	// batch bounds the connections that may read after a poll, the connections that are evicted in one pass, except beyond
	// 5/4, and how many a search finds.
	batch = 64
)

// Budget is that of one scheduler.
type Budget struct {
	s              *act.Scheduler
	paused         bool
	ending         bool // TurnEnd is going to be called
	total          int
	messages       map[*byte]*Message // by the last byte
	most           int                // less than 0: no bound
	alarm          int                // with more than that something has to be done
	accounts       []*Account
	known, untried waiters
	admitted       []Owner       // since the latest poll, and not read from yet
	since          time.Duration // when it has paused first
	resumed        time.Duration // when the latest pause has ended
	timer          act.Timer     // while it is paused

	pauses, evicted, evictedBytes uint64
}

var budgets = act.NewLocal(func(s *act.Scheduler) *Budget {
	b := &Budget{s: s, messages: map[*byte]*Message{}}
	b.Bound(standard() / len(s.Group().Schedulers()))
	return b
})

// standard returns the budget of all schedulers together, if none is set: half of the memory that the process may have.
var standard = sync.OnceValue(func() int {
	if memory := resource.Memory(); memory > 0 {
		return int(min(memory/2, math.MaxInt))
	}
	return math.MaxInt
})

// Of returns the budget of s.
func Of(s *act.Scheduler) *Budget { return budgets.Get(s) }

// Bound sets how much may be held, in bytes. Less than 0 means no bound.
func (b *Budget) Bound(most int) {
	b.most, b.alarm = most, most
	if most < 0 {
		b.alarm = math.MaxInt
	}
}

// Total returns how many bytes are held.
func (b *Budget) Total() int { return b.total }

// Paused reports whether connections that hold nothing are read from only in turn: see Admit.
func (b *Budget) Paused() bool { return b.paused }

// Admit reports whether o, which holds nothing, may be read from in a pause: once when it has waited for its turn.
func (b *Budget) Admit(o Owner) bool {
	i := slices.Index(b.admitted, o)
	if i >= 0 {
		b.admitted = slices.Delete(b.admitted, i, i+1)
	}
	return i >= 0
}

// waiters are tasks that wait for their turns to read.
type waiters []waiter

type waiter struct {
	act.Waker
	o Owner
}

// Await has w woken when the pause ends, or when o may be read from, those first that have waited for longest. Strangers are
// after all others.
func (b *Budget) Await(w act.Waker, o Owner, untried bool) {
	q := &b.known
	if untried {
		q = &b.untried
	}
	if len(*q) == cap(*q) {
		*q = slices.DeleteFunc(*q, func(w waiter) bool { return w.Stale() })
		if len(*q) > cap(*q)/2 {
			*q = slices.Grow(*q, len(*q)) // or each of the next calls would search it
		}
	}
	*q = append(*q, waiter{w, o})
}

// Set says how many bytes a holds now. Only a turn, or a posted function, may make it more.
func (b *Budget) Set(a *Account, bytes int) {
	switch {
	case bytes > 0 && a.place == 0:
		b.accounts = append(b.accounts, a)
		a.place = len(b.accounts)
	case bytes == 0 && a.place > 0:
		last := len(b.accounts) - 1
		moved := b.accounts[last]
		b.accounts[a.place-1], moved.place = moved, a.place
		b.accounts[last] = nil
		b.accounts, a.place = b.accounts[:last], 0
	}
	before := a.bytes
	a.bytes = bytes
	b.add(bytes - before)
}

// Message is bytes that nobody changes, such as a message to many connections. It counts once on each scheduler that has
// references to it, and not once for each reference: otherwise one message to a crowd would evict the crowd.
type Message struct {
	last              *byte // by which it is known: the rest of a message that was sent in part has the same
	references, bytes int
}

// Part returns a reference's part of the bytes: the parts of all references together are the memory that the message
// takes.
func (m *Message) Part() int { return m.bytes / m.references }

// Refer adds a reference to p, which is not empty. It may make more to be held, as Set may.
func (b *Budget) Refer(p []byte) *Message {
	last := &p[len(p)-1]
	m := b.messages[last]
	if m == nil {
		m = &Message{last: last}
		b.messages[last] = m
	}
	m.references++
	if more := len(p) - m.bytes; more > 0 { // the first reference may be to the rest of a message that was sent in part
		m.bytes += more
		b.add(more)
	}
	return m
}

// Forget takes a reference back.
func (b *Budget) Forget(m *Message) {
	if m.references--; m.references == 0 {
		delete(b.messages, m.last)
		b.add(-m.bytes)
	}
}

// add notes that more bytes are held, or less.
func (b *Budget) add(bytes int) {
	b.total += bytes
	switch {
	case b.total >= b.alarm:
		b.reached()
	case b.paused && b.total < b.low():
		b.resume()
	}
}

// low is where a pause ends.
func (b *Budget) low() int { return b.most - b.most/8 }

func (b *Budget) reached() {
	if !b.paused {
		now := b.s.Now()
		if b.paused, b.alarm = true, b.most+b.most/4; b.pauses == 0 || now-b.resumed > patience {
			b.since = now
		}
		b.pauses++
		b.s.CallAt(&b.timer, now+pollEvery, b)
	}
	if b.total > b.alarm && !b.ending {
		b.ending = true
		b.s.Internals().AtTurnEnd(b)
	}
}

func (b *Budget) resume() {
	b.paused, b.alarm, b.resumed = false, b.most, b.s.Now()
	b.timer.Stop()
	b.wake(math.MaxInt)
}

// wake wakes connections that wait, at most so many. In a pause they may read until the next poll, even if in between the pause
// ends and another one begins.
func (b *Budget) wake(most int) {
	if b.paused {
		clear(b.admitted)
		b.admitted = b.admitted[:0]
	}
	for _, q := range []*waiters{&b.known, &b.untried} {
		n := 0
		for _, w := range *q {
			if most == 0 {
				break
			}
			if n++; w.Stale() {
				continue
			}
			most--
			if w.Wake(); b.paused {
				b.admitted = append(b.admitted, w.o)
			}
		}
		*q = slices.Delete(*q, 0, n)
	}
}

// TurnEnd evicts at once beyond 5/4.
func (b *Budget) TurnEnd() {
	b.ending = false
	if b.total > b.alarm && b.paused {
		b.evictTo(b.most, stillFor, math.MaxInt)
		b.evictTo(b.most, 0, math.MaxInt)
	}
}

// Expire evicts the connections that may be evicted in a pause.
func (b *Budget) Expire() {
	now, still := b.s.Now(), stillFor
	if now-b.since >= patience {
		still = 0
	}
	n := b.evictTo(b.low()-1, still, batch)
	if b.paused {
		if n == batch {
			b.s.CallAt(&b.timer, now+1, b) // it goes on in the next pass
			return
		}
		b.wake(batch)
		b.s.CallAt(&b.timer, now+pollEvery, b)
	}
}

// found is a connection that may be evicted.
type found struct {
	account *Account
	weight  float64
}

// evictTo evicts the worst connections, of the ones on which nothing has moved for as long as still, until no more than total
// bytes are held, or most have been evicted. It returns how many.
func (b *Budget) evictTo(total int, still time.Duration, most int) (n int) {
	for b.total > total && n < most {
		before := n
		for _, f := range b.search(still) {
			if b.total <= total || n == most {
				break
			}
			o := f.account.Owner
			if f.account.bytes == 0 {
				continue // it was found twice
			}
			if still > 0 { // a system may report late that there is room
				_ = o.Flush() // an error is the next call's
				if _, now := o.Held(); now < still {
					continue
				}
			}
			n++
			b.abort(o)
		}
		if n == before {
			break
		}
	}
	return n
}

// search finds the worst connections, the worst of them first: the ones with the most bytes, times the seconds that have begun
// since a byte has gone either way. It is a search through all that hold something, and not a list in their order: a list would
// cost each byte time.
func (b *Budget) search(still time.Duration) (all []found) {
	for _, a := range b.accounts {
		bytes, since := a.Owner.Held()
		if since < still {
			continue
		}
		all = append(all, found{a, float64(bytes) * (1 + since.Seconds())})
		if len(all) == 8*batch {
			all = worst(all)
		}
	}
	return worst(all)
}

// worst sorts all, and returns at most batch of them.
func worst(all []found) []found {
	slices.SortStableFunc(all, func(x, y found) int { return cmp.Compare(y.weight, x.weight) })
	return all[:min(len(all), batch)]
}

func (b *Budget) abort(o Owner) {
	bytes, still := o.Held()
	peer := o.Peer()
	before := b.total
	o.Abort()
	b.evicted++
	b.evictedBytes += uint64(before - b.total)
	lines.Add(b.s, func(l *line) {
		if l.n++; bytes > l.bytes {
			l.peer, l.bytes, l.still, l.bound = peer, bytes, still, b.most
		}
	})
}

// line is what was evicted in a second: so many connections, with the largest.
type line struct {
	n, bytes, bound int
	peer            string
	still           time.Duration
}

var lines = summary.New(func(log *zap.Logger, l line) {
	log.Warn("connections were evicted: what is queued and buffered has reached its bound",
		zap.Int("in a second", l.n), zap.String("the largest", l.peer), zap.Int("its bytes", l.bytes),
		zap.Duration("without progress for", l.still), zap.Int("bound of its scheduler", l.bound))
})

// Counts implements facts.Counter.
func (b *Budget) Counts(add func(name string, n uint64)) {
	add("held_bytes", uint64(b.total))
	add("held_bytes_max", uint64(max(b.most, 0)))
	add("reading_pauses_total", b.pauses)
	add("connections_evicted_total", b.evicted)
	add("evicted_bytes_total", b.evictedBytes)
}
