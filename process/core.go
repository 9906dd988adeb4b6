package process

import (
	"fmt"
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/chain"
)

// core is the part of a process that does not depend on the type of its messages.
//
//	            a message, a signal            taken out of the queue
//	sleeping ────────────────────▶ queued ──────────────────────────▶ running ──▶ dead
//	   ▲  │                          ▲                                │  │  ▲
//	   │  └── a hand-off ────────────┼────────────────────────────────┼──┼──┘
//	   │                             └────── there is more to do ─────┘  │
//	   └──────────────────────────────────── nothing came meanwhile ─────┘
//
// The state is part of the word, together with a lock and the signals that the process has not seen. The word changes by
// a compare-and-swap while it is not locked, or by a store of the thread that has locked it. So a message that arrives
// between "the mailbox is empty" and "asleep" makes that very swap fail.
//
//   - Only the thread that takes a process out of a queue may make it running, and only its runner ends that.
//   - A process is in a queue, and owner is set, only while it is queued. For a moment it is queued and in no queue yet.
//   - While the process sleeps, the runner's fields belong to the holder of the lock.
type core struct {
	word  word
	owner word // the queue that it is in: the index of the runner and 1; 0: none. Changed under the queue's lock
	sys   *System
	links [2]links

	body body

	// The runner's fields.
	on        *runner
	left      int32  // messages that this turn may still receive
	cutOff    bool   // the turn received less than there was
	overran   bool   // the turn has sent to a full mailbox
	oversized bool   // the mailbox has more memory than an empty one keeps
	over      Reason // why it is to end, or has ended, unless it was killed
	lastOrder uint32 // the number of the last order that it was told

	why     Reason // of a kill: Killed or Linked. Under the lock
	stops   bool   // the action is a Stopper
	lasting bool   // it may survive its end: see child.outlasts

	home uint32 // the registry that lists it: the index of the runner and 1; 0: none yet
	took word   // the microseconds of a turn that was timed, see runner.times; 0: none was
	id   uint64

	rare *rare // under the lock
}

// body is the part of a process that depends on the type of its messages: a Self.
type body interface {
	// turn takes a turn, in which the process first takes its signals.
	turn() act.Directive
	// commit publishes how much has been received, and returns how much room there is. Under the lock.
	commit() (room int)
	// length returns how many messages are in the mailbox, as far as senders know, and their bound. Under the lock.
	length(sleeping bool) (n, limit int)
	// empty drops all messages of a process that has ended, and returns how many there were.
	empty() int
	// action returns the Action, or nil after empty.
	action() any
	// ref returns the Ref.
	ref() AnyRef
}

const (
	_            = 1 << iota // locked
	mail                     // senders have added messages that the runner has not seen
	poked                    // Self.Poke was called
	killed                   // the next turn is the end
	orderPending             // there is a shutdown request that it was not told of
	roomWanted               // there is a waiter for room in its mailbox
	blocked                  // it waits for room in other mailboxes; only that, or an end, gives it a turn
	parked                   // it waits for its supervisor; only that, or an end, gives it a turn
	queued       = 0         // the state of a new process
	sleeping     = 1 << 14
	running      = 2 << 14
	dead         = 3 << 14
	states       = dead

	signals = mail | poked | killed | orderPending // reasons for a turn
)

// rare has the fields that few processes need.
type rare struct {
	name      string
	refused   uint64                  // messages, for lack of room
	err       error                   // of Failed and Panicked
	cause     error                   // of Linked
	waiters   waiters                 // for room in the mailbox
	debts     int                     // mailboxes in which this process waits for room
	observers chain.List[endObserver] // of its end
	owned     []io.Closer             // of the turns
	end       *future.Future[Notice]
	child     *child // of a supervisor
}

// lock locks the word, and returns what it was, without locked.
func (c *core) lock() uint32 { return lock(&c.word) }

// unlock stores w as the word.
func (c *core) unlock(w uint32) { c.word.Store(w) }

// more returns rare, which it makes when it is first needed. Under the lock.
func (c *core) more() *rare {
	if c.rare == nil {
		c.rare = &rare{}
	}
	return c.rare
}

// signal gives a process a turn for the reason why. r is the runner of this thread, if it is one's.
func (c *core) signal(why uint32, r *runner) {
	w := c.lock()
	if w&states == dead {
		c.unlock(w)
		return
	}
	c.activate(w|why, r)
}

// activate unlocks a process with the signals of w, and queues it if it sleeps. The System must not be found quiescent
// before the process is in a queue.
func (c *core) activate(w uint32, r *runner) {
	if w&states != sleeping || w&(blocked|parked) != 0 && w&killed == 0 {
		c.unlock(w)
		return
	}
	w = w&^(states|blocked) | queued
	sys := c.sys
	if sys.runs(r) {
		r.resume()
		c.unlock(w)
		r.enqueue(c)
	} else {
		sys.inTransit.Add(1)
		c.unlock(w)
		sys.enqueueAnywhere(c)
	}
}

// begin makes a process running that was taken out of a queue. It reports false if the process has ended: all were ended
// while it was on its way into the queue.
func (c *core) begin() bool {
	for {
		w := c.word.Load()
		if w&(locked|states) == dead {
			return false
		}
		if w&locked == 0 && c.word.CompareAndSwap(w, w&^states|running) {
			return true
		}
		backOff()
	}
}

// trySleep ends the turn of a process that has nothing left to do. It reports false if the process was signalled
// meanwhile.
func (c *core) trySleep() bool { return c.word.CompareAndSwap(running, sleeping) }

// endTurn ends the turn of a process that waits for room, that has nothing left to do if idle is set, or that has more to
// do. It reports whether the process is queued now, and returns the senders that may go on.
func (c *core) endTurn(r *runner, idle bool) (more bool, free []waiter) {
	w := c.lock()
	w, free = c.makeRoom(w, r)
	next := uint32(queued)
	switch {
	case c.overran && c.rare.debts > 0: // there may have been room since
		if w&killed == 0 {
			next = sleeping | blocked
		}
	case w&(parked|killed) == parked, idle && w&signals == 0:
		next = sleeping
	}
	c.unlock(w&^states | next)
	return next == queued, free
}

// makeRoom publishes how much has been received, and returns the waiters for which there is room now. Under the lock.
func (c *core) makeRoom(w uint32, r *runner) (uint32, []waiter) {
	room := c.body.commit()
	if w&roomWanted == 0 || room <= 0 {
		return w, nil
	}
	waiting := &c.rare.waiters
	if r.free = waiting.take(room, r.free[:0]); waiting.First == nil {
		w &^= roomWanted
	}
	return w, r.free
}

// Kill ends the process, as Kill of its Ref does: after the present turn, or before the next one. Any goroutine may call it.
func (c *core) Kill() bool { return c.kill(nil, Killed, nil) }

// String returns the name of the process, or its number.
func (c *core) String() string {
	w := c.lock()
	x := c.rare
	c.unlock(w)
	if x != nil && x.name != "" {
		return x.name
	}
	return fmt.Sprintf("process %d", c.id)
}

func (c *core) process() *core { return c }

// Scheduler returns the scheduler of the present turn. The next turn may be elsewhere.
func (c *core) Scheduler() *act.Scheduler { return c.on.s }
