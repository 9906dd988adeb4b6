package process

import (
	"math"

	"github.com/daimon-go/daimon/act"
)

// Self is a process as its own action sees it. Its methods are for the turns of that process, unless they say
// otherwise.
//
// Its mailbox is two slices: senders append to in, under the lock; the turns take from out, without it, and have the
// two changed when it is empty. A message to a process that sleeps and has none goes to out at once: nobody else is
// there. So a message that is handed on costs one lock, and none is ever moved.
type Self[M any] struct {
	in    []M   // mail is set if there is something
	held  int32 // what senders have to count of out
	limit int32 // of what lies in the mailbox; 0: none
	core        // its beginning is what senders need, too: with in that is one cache line

	out    []M // from pos on: not received yet
	pos    int32
	full   Overflow
	acting Action[M]
}

// keeps is how many messages an empty mailbox keeps the memory for.
const keeps = 32

// Receive returns the next message. false means that there is none, or that the turn has lasted long enough: what to
// do is to return act.Wait, in both cases.
//
// A turn ends like that after Config.Messages messages, and when one was handed on to another process, which is then
// to have its turn: see Ref.Send.
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
	*next = *new(M) // it is the receiver's now
	p.pos++
	p.left--
	return m, true
}

// receivable looks for messages in the other slice, if the turn may take any more.
func (p *Self[M]) receivable() bool {
	if int(p.pos) == len(p.out) {
		if p.word.Load()&mail == 0 {
			return false
		}
		p.look(mail)
	}
	if int(p.pos) < len(p.out) && (p.left <= 0 || p.on.next != nil || p.indebted()) {
		p.cut = true
		return false
	}
	return int(p.pos) < len(p.out)
}

// Pending is how many messages there are that Receive has not returned, as far as this turn has seen.
func (p *Self[M]) Pending() int { return len(p.out) - int(p.pos) }

// look takes in what has come, and returns the word as it was. seen is what the turn heeds of it: in the middle of one
// that is only the mail.
func (p *Self[M]) look(seen uint32) uint32 {
	w := p.lock()
	if int(p.pos) == len(p.out) {
		p.in, p.out, p.pos = p.out[:0], p.in, 0 // what was received is zero
	} else {
		if int(p.pos) > len(p.out)/2 {
			p.compact() // now and then, so that a message is moved once or twice, however many there are
		}
		p.out = append(p.out, p.in...)
		clear(p.in)
		p.in = p.in[:0]
	}
	p.bulk = cap(p.in)+cap(p.out) > keeps
	now, free := p.makeRoom(w&^seen, p.on)
	p.unlock(now)
	p.on.release(free)
	return w
}

// compact forgets what has been received.
func (p *Self[M]) compact() {
	n := copy(p.out, p.out[p.pos:])
	clear(p.out[n:])
	p.out, p.pos = p.out[:n], 0
}

// commit is body's. In an empty mailbox there is room for everybody who waits for some: one of them may have given up
// since, and nothing would make room for the others.
func (p *Self[M]) commit() int {
	p.held = int32(len(p.out)) - p.pos
	n := int(p.held) + len(p.in)
	if n == 0 && p.bulk {
		p.in, p.out, p.pos, p.bulk = nil, nil, 0, false
	}
	if n == 0 || p.limit == 0 {
		return math.MaxInt
	}
	return int(p.limit) - n
}

func (p *Self[M]) empty() int {
	n := len(p.out) - int(p.pos) + len(p.in)
	p.in, p.out, p.pos, p.held, p.acting = nil, nil, 0, 0, nil // a Ref keeps p
	return n
}

// put adds m, and returns the word with what that comes to: if p sleeps and has nothing else to look at, m is where
// Receive looks, and nothing has to be said. Under the lock.
func (p *Self[M]) put(w uint32, m M) uint32 {
	if w&(states|mail) == sleeping && int(p.pos) == len(p.out) {
		p.out, p.pos, p.held = append(p.out[:0], m), 0, 1
		return w
	}
	p.in = append(p.in, m)
	return w | mail
}

// lacks tells whether there is no room for another message. Under the lock.
func (p *Self[M]) lacks(w uint32) bool {
	if p.limit == 0 {
		return false
	}
	if w&states == sleeping {
		p.held = int32(len(p.out)) - p.pos // nobody is receiving
	}
	return int(p.held)+len(p.in) >= int(p.limit)
}

func (p *Self[M]) turn() act.Directive {
	if w := p.word.Load(); w != running {
		if w = p.look(mail | poked | unheard); w&unheard != 0 {
			p.tell()
		}
	}
	return p.acting.Act(p)
}

func (p *Self[M]) action() any   { return p.acting }
func (p *Self[M]) party() AnyRef { return Ref[M]{p} }

// tell tells the action of the order that is in force, if it has not heard of it.
func (p *Self[M]) tell() {
	if o := p.news(); o != nil {
		p.heard = o.number
		p.acting.(Stopper[M]).Stop(p, o.order)
	}
}
