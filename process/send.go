package process

import (
	"context"

	"github.com/daimon-go/daimon/internal/chain"
)

// Send gives m to the process. Nothing is copied, so the sender must no longer touch what m points to. Messages of one
// sender arrive in the order in which they were sent. The error is ErrDead if the process has ended. If the mailbox is
// full, the error is ErrFull with [Options].Reject, and otherwise an [act.Blocked], unless the sender is a process, which
// has sent the message and waits for room before its next turn.
//
// A process that sends to one that sleeps or is queued hands its thread over: the receiver has the next turn there, the
// present turn receives no more messages, and the sender continues after the processes that were already queued. Of
// several receivers in a turn only the first gets the thread; the others are queued.
//
// Room in a mailbox goes to the next sender, even while others wait for it. A process that sends to a full mailbox of
// another System gets an act.Blocked too, which only a task of its own can wait for: see [Do].
func (to Ref[M]) Send(from Sender, m M) error {
	p := to.p
	if p == nil {
		return ErrDead
	}
	r := runnerOf(from)
	if r != nil && r.sys != p.sys {
		r = nil
	}
	w := p.lock()
	owes := false
	if w&states == dead || p.full(w) {
		var err error
		if w, owes, err = p.refuse(w, r); err != nil {
			p.unlock(w)
			return err
		}
	}
	w = p.put(w, m)
	p.handOffOrActivate(w, r)
	if owes {
		r.current.addDebt()
	}
	return nil
}

// Deliver is Send for a goroutine that may block, never for the thread of a scheduler: while there is no room in the
// mailbox Deliver waits, until ctx ends. It then returns ctx.Err().
func (to Ref[M]) Deliver(ctx context.Context, m M) error {
	if to.p == nil {
		return ErrDead
	}
	for {
		err := to.Send(to.p.sys, m)
		b, ok := err.(*blockedSend)
		if !ok {
			return err
		}
		if err := b.wait(ctx); err != nil {
			return err
		}
	}
}

// deliver adds a message that no bound refuses: one of the process itself, or one that stands for an event. It reports
// whether the process was alive. r is the runner of this thread, if it is one's.
func (p *Self[M]) deliver(r *runner, m M) bool {
	w := p.lock()
	if w&states == dead {
		p.unlock(w)
		return false
	}
	p.activate(p.put(w, m), r)
	return true
}

// handOffOrActivate unlocks a process that has a new message. If a process has sent it, and has not handed its thread over
// yet, the receiver is next there, if it sleeps or can be taken out of its queue.
func (c *core) handOffOrActivate(w uint32, r *runner) {
	switch {
	case r == nil || !r.canHandOff():
		c.activate(w, r)
	case w&(states|blocked|parked) == sleeping:
		c.unlock(w&^states | running)
		r.handOff(c)
	default:
		c.unlock(w)
		if w&states == queued {
			r.takeOut(c)
		}
	}
}

// canHandOff reports whether a process has its turn that has not handed its thread over yet.
func (r *runner) canHandOff() bool { return r.current != nil && r.next == nil }

// handOff gives c, which is running, the next turn here.
func (r *runner) handOff(c *core) {
	r.next = c
	r.handedOff++
}

// takeOut takes c out of the middle of its queue, for the next turn here, if that is possible without waiting.
func (r *runner) takeOut(c *core) {
	owner := c.owner.Load()
	if owner == 0 || !r.sys.runners[owner-1].queue.tryDequeueEntry(c) {
		return
	}
	if c.begin() {
		r.handOff(c)
	}
}

// refuse decides about a message to a process that has ended, or whose mailbox is full. If there is no error the message
// is added all the same, and owes reports whether the sender then has to wait for room. Under the lock.
func (p *Self[M]) refuse(w uint32, r *runner) (now uint32, owes bool, err error) {
	switch {
	case w&states == dead:
		counts := p.sys.countsOf(r)
		counts.dropped.Add(1)
		counts.letters.Add(1)
		return w, false, ErrDead
	case r != nil && r.current == &p.core && p.hasRoom(true):
		return w, false, nil // this turn has made room that senders do not know of
	case p.rejects:
		p.sys.countsOf(r).dropped.Add(1)
		p.more().refused++
		return w, false, ErrFull
	case r == nil || r.current == nil:
		return w, false, &blockedSend{p}
	case r.current == &p.core:
		return w, false, nil
	}
	waiting := &p.more().waiters
	if last := waiting.Last; last != nil && last.Of == waiter(r.current) {
		return w, false, nil // it waits here already: once a turn is enough
	}
	waiting.Append(&chain.Node[waiter]{Of: r.current})
	return w | roomWanted, true, nil
}
