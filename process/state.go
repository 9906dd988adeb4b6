package process

import (
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
)

// core is what the scheduler knows of a process, whatever its messages are.
//
//	            a message, a poke              taken out of the queue
//	sleeping ────────────────────▶ queued ──────────────────────────▶ running ──▶ dead
//	   ▲  │                          ▲                                │  │  ▲
//	   │  └── a message, handed on ──┼────────────────────────────────┼──┼──┘
//	   │                             └────── there is more to do ─────┘  │
//	   └──────────────────────────────────── nothing came meanwhile ─────┘
//
// The state is part of the word, with a lock and what has happened to the process. The word is changed by a
// compare-and-swap while it is not locked, or by who has locked it. So a message that arrives between "nothing is
// there" and "asleep" makes that very swap fail.
//
//   - Only who takes a process out of a queue may make it running, only its runner may end that.
//   - A process is in a queue, and owner set, only while it is queued; for a moment it is queued and in none yet.
//   - What is the runner's belongs to who holds the lock while the process sleeps: nobody runs it.
type core struct {
	word  word
	owner word // in which queue it is: the reactor's index and 1; 0: in none. Changed under that queue's lock

	next, prev *core // in that queue, or in the line of a thief

	sys  *System
	body body

	// The runner's.
	on       *reactor
	left     int32  // messages of this turn
	cut      bool   // the turn was ended while there was more to receive
	borrowed bool   // it has sent what there was no room for
	bulk     bool   // the mailbox has more memory than it keeps when it is empty
	over     Reason // why it is to end, or has ended, if not by a kill
	heard    uint32 // the number of the last order that it was told of

	why Reason // of a kill: Killed or Linked. Under the lock

	stops bool // the action is a Stopper

	// Among all, from the end of the first turn on; see census.
	home           uint32 // whose it is: a reactor's index and 1; 0: nobody's yet
	younger, older *core

	id uint64

	rare *rare // under the lock; what few processes need
}

// body is the part of a process that knows its messages: a Self.
type body interface {
	// turn is one turn, in which the process looks at what has come first.
	turn() act.Directive
	// commit tells senders how much has been received, and returns how much room there is. Under the lock.
	commit() (room int)
	// empty drops all messages of one that has ended, and returns how many there were.
	empty() int
	// action is what has the turns.
	action() any
	// party is the Ref.
	party() AnyRef
}

const (
	_        = 1 << iota // locked
	mail                 // there is something that the runner has not seen
	poked                // somebody wants a turn for it, without a message
	killed               // its next turn is its end
	unheard              // an order is to be told
	wanted               // somebody waits for room in its mailbox
	blocked              // it waits for room in another's; nothing but that and an end gives it a turn
	queued   = 0         // as it is when it is made
	sleeping = 1 << 14
	running  = 2 << 14
	dead     = 3 << 14
	states   = dead

	calls = mail | poked | killed | unheard // for a turn
)

// lock returns the word as it was, without locked.
func (c *core) lock() uint32 { return lock(&c.word) }

// unlock makes w the word.
func (c *core) unlock(w uint32) { c.word.Store(w) }

// call has a process look at something. r is the reactor of this thread, if it is one.
func (c *core) call(why uint32, r *reactor) {
	w := c.lock()
	if w&states == dead {
		c.unlock(w)
		return
	}
	c.rouse(w|why, r)
}

// rouse unlocks a process that is to see what w says now: if it sleeps it is queued. Until it is in a queue nobody may
// find that there is nothing left to do.
func (c *core) rouse(w uint32, r *reactor) {
	if w&states != sleeping || w&blocked != 0 && w&killed == 0 {
		c.unlock(w)
		return
	}
	w = w&^(states|blocked) | queued
	sys := c.sys
	if sys.runs(r) {
		asleep := r.getUp()
		c.unlock(w)
		r.enqueue(c, asleep)
	} else {
		sys.coming.Add(1)
		c.unlock(w)
		sys.scatter(c)
	}
}

// sleep ends the turn of a process that has nothing to do, unless something has come: then it reports false.
func (c *core) sleep() bool { return c.word.CompareAndSwap(running, sleeping) }

// requeue ends the turn of a process that has more to do, or that has heard of something meanwhile. What it has
// received makes room. It returns who may send now.
func (c *core) requeue(r *reactor) []waiter {
	w := c.lock()
	w, free := c.makeRoom(w, r)
	c.unlock(w&^states | queued)
	return free
}

// rest is sleep where that was refused: it looks what has come, which may be no more than somebody who waits for
// room. It reports whether the process sleeps.
func (c *core) rest(r *reactor) (asleep bool, free []waiter) {
	w := c.lock()
	w, free = c.makeRoom(w, r)
	if w&calls == 0 {
		c.unlock(w&^states | sleeping)
		return true, free
	}
	c.unlock(w&^states | queued)
	return false, free
}

// makeRoom commits what has been received, and takes those out of line for whom there is room now. Under the lock.
func (c *core) makeRoom(w uint32, r *reactor) (uint32, []waiter) {
	room := c.body.commit()
	if w&wanted == 0 || room <= 0 {
		return w, nil
	}
	line := &c.rare.line
	if r.free = line.take(room, r.free[:0]); line.empty() {
		w &^= wanted
	}
	return w, r.free
}

// block ends the turn of a process that has sent more than there was room for. It reports false if there is by now.
func (c *core) block(r *reactor) (blocks bool, free []waiter) {
	w := c.lock()
	w, free = c.makeRoom(w, r)
	if c.rare.debts == 0 || w&killed != 0 {
		c.unlock(w&^states | queued)
		return false, free
	}
	c.unlock(w&^states | sleeping | blocked)
	return true, free
}

// more is rare, made when it is first needed. Under the lock.
func (c *core) more() *rare {
	if c.rare == nil {
		c.rare = &rare{}
	}
	return c.rare
}

// rare is what few processes need.
type rare struct {
	name  string
	err   error // what it has failed with
	cause error // of the one that it was linked to
	line  line  // for room in the mailbox
	debts int   // mailboxes in which this one waits for room
	ties  ties  // who hears of the end, and what ends with it
	end   *future.Future[Notice]
}

// String is the name given, or the process's number.
func (c *core) String() string {
	w := c.lock()
	x := c.rare
	c.unlock(w)
	if x != nil && x.name != "" {
		return x.name
	}
	return fmt.Sprintf("process %d", c.id)
}
