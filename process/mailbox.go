package process

import (
	"math"
	"slices"

	"github.com/daimon-go/daimon/act"
)

// Self is a process as its own Action sees it. Its methods are for the turns of the process, unless they say otherwise.
// Others hold a [Ref].
type Self[M any] struct {
	// The mailbox is two slices. Senders append to in, under the lock. The turns take from out, without the lock, and swap
	// the two when out is empty. A message to a sleeping process with an empty mailbox goes straight to out, since no turn
	// uses it. So a hand-off costs one lock, and no message is ever moved.
	in       []M   // mail is set if it is not empty
	outCount int32 // the messages in out, as far as senders know
	limit    int32 // of the mailbox; 0: none
	core           // its first fields are the senders' too: with those above they are one cache line

	out     []M // the messages from pos on are not received yet
	pos     int32
	rejects bool // messages that find the mailbox full
	act     Action[M]
}

// kept is how many messages an empty mailbox keeps memory for.
const kept = 32

// Ref returns the address of the process, to be given to others. Any goroutine that has the Self may call it.
func (p *Self[M]) Ref() Ref[M] { return Ref[M]{p} }

// Poke gives the process a turn, as a message would, for example when something that it has offloaded has finished. Any
// goroutine that has the Self may call it.
func (p *Self[M]) Poke() { p.signal(poked, nil) }

// Receive returns the next message. It returns false if there is none, or if the turn should end: after 16
// messages, and after a hand-off to another process (see [Ref.Send]). In both cases the Action returns act.Wait; a
// process that has more messages has another turn.
func (p *Self[M]) Receive() (m M, ok bool) {
	if int(p.pos) == len(p.out) || p.left <= 0 || p.on.next != nil {
		if !p.receivable() {
			return m, false
		}
	}
	if p.over != 0 {
		return m, false
	}
	next := &p.out[p.pos]
	m = *next
	*next = *new(M) // it belongs to the receiver now
	p.pos++
	p.left--
	return m, true
}

// receivable reports whether the turn may receive a message. It swaps the slices if out is empty.
func (p *Self[M]) receivable() bool {
	if int(p.pos) == len(p.out) {
		if p.word.Load()&mail == 0 {
			return false
		}
		p.collect(mail)
	}
	if int(p.pos) < len(p.out) && (p.left <= 0 || p.on.next != nil || p.overran) {
		p.cutOff = true
		return false
	}
	return int(p.pos) < len(p.out)
}

func (p *Self[M]) turn() act.Directive {
	if w := p.word.Load(); w != running {
		if w = p.collect(mail | poked | orderPending); w&orderPending != 0 {
			p.tellOrder()
		}
	}
	return p.act.Act(p)
}

// collect moves the messages that senders have added to out, clears the signals in seen, and returns the word as it was.
func (p *Self[M]) collect(seen uint32) uint32 {
	w := p.lock()
	if int(p.pos) == len(p.out) {
		p.in, p.out, p.pos = p.out[:0], p.in, 0 // what was received is zero
	} else {
		if int(p.pos) > len(p.out)/2 {
			// Rarely enough that each message moves once or twice, however many there are. Delete also zeroes what it leaves.
			p.out, p.pos = slices.Delete(p.out, 0, int(p.pos)), 0
		}
		p.out = append(p.out, p.in...)
		clear(p.in)
		p.in = p.in[:0]
	}
	p.oversized = cap(p.in)+cap(p.out) > kept
	now, free := p.makeRoom(w&^seen, p.on)
	p.unlock(now)
	p.on.release(free)
	return w
}

// put adds m, and returns the new word: if p sleeps and has no signal, m goes straight to out, without a signal. Under
// the lock.
func (p *Self[M]) put(w uint32, m M) uint32 {
	if w&(states|mail) == sleeping && int(p.pos) == len(p.out) {
		p.out, p.pos, p.outCount = append(p.out[:0], m), 0, 1
		return w
	}
	p.in = append(p.in, m)
	return w | mail
}

// full reports whether there is no room for another message. Under the lock.
func (p *Self[M]) full(w uint32) bool {
	return p.limit != 0 && !p.hasRoom(w&states == sleeping)
}

// hasRoom counts out anew if count is set: if p sleeps, or in its own turn. Under the lock.
func (p *Self[M]) hasRoom(count bool) bool {
	if count {
		p.outCount = int32(len(p.out)) - p.pos
	}
	return int(p.outCount)+len(p.in) < int(p.limit)
}

// commit implements body. In an empty mailbox there is room for all waiters: one of them may have given up, and then
// nothing would make room for the others.
func (p *Self[M]) commit() int {
	p.outCount = int32(len(p.out)) - p.pos
	n := int(p.outCount) + len(p.in)
	if n == 0 && p.oversized {
		p.in, p.out, p.pos, p.oversized = nil, nil, 0, false
	}
	if n == 0 || p.limit == 0 {
		return math.MaxInt
	}
	return int(p.limit) - n
}

func (p *Self[M]) length(sleeping bool) (n, limit int) {
	n = int(p.outCount)
	if sleeping {
		n = len(p.out) - int(p.pos)
	}
	return n + len(p.in), int(p.limit)
}

func (p *Self[M]) empty() int {
	n := len(p.out) - int(p.pos) + len(p.in)
	p.in, p.out, p.pos, p.outCount, p.act = nil, nil, 0, 0, nil // a Ref keeps p
	return n
}

func (p *Self[M]) action() any { return p.act }
func (p *Self[M]) ref() AnyRef { return Ref[M]{p} }

// tellOrder tells the action the order that is in force, if it was not told.
func (p *Self[M]) tellOrder() {
	if o := p.untoldOrder(); o != nil {
		p.lastOrder = o.number
		p.act.(Stopper[M]).Stop(p, o.order)
	}
}
