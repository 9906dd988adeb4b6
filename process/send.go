package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
)

// Send gives m to the process, whose it is from then on: nothing is copied, so what m points to must not be touched
// any more. Messages of one sender come in the order in which they were sent. The error is ErrDead if the process has
// ended, ErrFull if its mailbox is full and it was made with Reject, or, if it was made with Block and the sender is
// neither a process nor itself, a Blocked: m has not been sent then.
//
// If it is a process that sends, and the receiver sleeps or is queued anywhere, it is handed on: the receiver has the
// next turn on this reactor, the present turn receives no more, and the sender goes on when those have had their turn
// that were queued before. Of several receivers that goes for the first, and the others are queued.
//
// A free place is for whoever comes first, also while others wait for one. A process that sends to a full mailbox of
// another System is refused with a Blocked too, and cannot wait for it: that is for a task of its own, see Do.
func (to Ref[M]) Send(from Sender, m M) error {
	return dropped(to.send(from, m, nil), nil)
}

// send is Send, but for a message that is dropped: the error is errDropped. A process that asks waits for room as by.
func (to Ref[M]) send(from Sender, m M, by *loan) error {
	p := to.p
	if p == nil {
		return ErrDead
	}
	r := reactorOf(from)
	if r != nil && r.sys != p.sys {
		r = nil
	}
	w := p.lock()
	owing := false
	if w&states == dead || p.lacks(w) {
		var err error
		if w, owing, err = p.refuse(w, r, by); err != nil {
			p.unlock(w)
			return err
		}
	}
	w = p.put(w, m)
	switch {
	case w&states == sleeping && w&blocked == 0:
		p.wake(w, r)
	case w&states == queued && r != nil && r.offers():
		p.unlock(w)
		r.fetch(&p.core)
	default:
		p.unlock(w)
	}
	if owing {
		r.current.borrow()
	}
	return nil
}

// reactorOf is the one on whose thread the caller is, nil if there is none.
func reactorOf(from Sender) *reactor {
	if s := from.Scheduler(); s != nil {
		return places.Get(s).reactor
	}
	return nil
}

// wake has a sleeping process look at what has come: here and now, or when it is its turn.
func (c *core) wake(w uint32, r *reactor) {
	if r == nil || !r.offers() {
		c.rouse(w, r)
		return
	}
	c.unlock(w&^states | running)
	r.handOn(c)
}

// handOn gives c, which is running, the next turn here.
func (r *reactor) handOn(c *core) {
	r.next = c
	r.passed++
}

// offers tells whether the turn of a process goes on that can hand on the reactor.
func (r *reactor) offers() bool { return r.current != nil && r.next == nil }

// fetch takes c out of the queue that it is in, if that can be done without waiting, for the next turn here.
func (r *reactor) fetch(c *core) {
	owner := c.owner.Load()
	if owner == 0 || !r.sys.reactors[owner-1].queue.tryDequeueEntry(c) {
		return
	}
	if c.begin() {
		r.handOn(c)
	}
}

// refuse is for a message to a process that has ended, or that has no room. Without an error it is to be sent none
// the less, and late if the sender has to wait for room. Under the lock.
func (p *Self[M]) refuse(w uint32, r *reactor, by *loan) (now uint32, owing bool, err error) {
	switch {
	case w&states == dead:
		p.sys.count(r)
		return w, false, ErrDead
	case r != nil && r.current == &p.core && p.spent():
		return w, false, nil
	case p.full == Drop:
		p.sys.count(r)
		return w, false, errDropped
	case p.full == Reject:
		return w, false, ErrFull
	case r == nil || r.current == nil:
		return w, false, &blockedSend{p}
	case r.current == &p.core:
		return w, false, nil
	}
	line := &p.more().line
	switch {
	case by != nil:
		by.join(&p.core)
	case line.isLast(r.current):
		return w, false, nil // it waits already: once a turn is enough
	default:
		line.join(r.current)
	}
	return w | wanted, true, nil
}

// errDropped is for a message that was dropped, as the receiver wants it. For most senders that is no error.
var errDropped = errors.New("process: dropped")

// dropped is err, or what it is to the sender that the message was dropped.
func dropped(err, as error) error {
	if err == errDropped {
		return as
	}
	return err
}

// spent tells whether the turn that is under way has made room that senders do not know of. Under the lock.
func (p *Self[M]) spent() bool {
	p.held = int32(len(p.out)) - p.pos
	return int(p.held)+len(p.in) < int(p.limit)
}

// borrow notes one message that there was no room for. There may be by now: then the return was first. It is for the
// turns of c.
func (c *core) borrow() {
	w := c.lock()
	c.more().debts++
	c.unlock(w)
	c.borrowed = true
}

// roomFor is the return of borrow.
func (c *core) roomFor(r *reactor) {
	w := c.lock()
	x := c.more()
	if x.debts--; x.debts > 0 || w&blocked == 0 {
		c.unlock(w)
		return
	}
	c.rouse(w&^blocked, r)
}

// indebted tells whether the process has to wait for room. It is for its turns.
func (c *core) indebted() bool {
	if !c.borrowed {
		return false
	}
	w := c.lock()
	defer c.unlock(w)
	return c.rare.debts > 0
}

// Blocked is the error of Ref.Send when the mailbox is full and the sender, a task, has to wait. A listener.Blocked has
// the same methods, so an action can return listener.Next of it.
type Blocked interface {
	error
	// Arm wakes the task when there is room, or when the process has ended. The task then sends the message again.
	Arm(t *act.Task)
}

// blockedSend is the Blocked of a mailbox.
type blockedSend struct{ box mailbox }

// mailbox is a Self, whatever its messages are.
type mailbox interface {
	process() *core
	lacks(w uint32) bool
}

func (b *blockedSend) Error() string {
	return fmt.Sprintf("process: the mailbox of %v is full", b.box.process())
}

// Arm implements Blocked.
func (b *blockedSend) Arm(t *act.Task) {
	w := t.Waker()
	if b.await(remote{w.Remote(), t}) == nil {
		w.Wake()
	}
}

// wait waits for room, or until the process has ended, or ctx has.
func (b *blockedSend) wait(ctx context.Context) error {
	c := make(chan struct{})
	s := b.await(closing(c))
	if s == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		b.leave(s)
		return ctx.Err()
	}
}

// leave takes a goroutine out of line that does not wait any more. If it has been its turn, that is the next one's.
func (b *blockedSend) leave(s *spot) {
	c := b.box.process()
	w := c.lock()
	var free []waiter
	if line := &c.more().line; !line.leave(s) && w&states != dead && !b.box.lacks(w) {
		free = line.take(1, nil)
	}
	c.unlock(w)
	for _, next := range free {
		next.roomFor(nil)
	}
}

// await puts w into line; nil means that there is no line.
func (b *blockedSend) await(w waiter) *spot {
	c := b.box.process()
	now := c.lock()
	if now&states == dead || !b.box.lacks(now) {
		c.unlock(now)
		return nil
	}
	s := c.more().line.join(w)
	c.unlock(now | wanted)
	return s
}

// Deliver is Send for a goroutine that may wait: if the mailbox is full, and was made with Block, it returns when m is
// in it, or ctx has ended.
func (to Ref[M]) Deliver(ctx context.Context, m M) error {
	return dropped(to.insist(ctx, m), nil)
}

// insist is send for a goroutine that may wait.
func (to Ref[M]) insist(ctx context.Context, m M) error {
	for {
		err := to.send(nowhere{}, m, nil)
		b, ok := err.(*blockedSend)
		if !ok {
			return err
		}
		if err := b.wait(ctx); err != nil {
			return err
		}
	}
}

// nowhere is a Sender that is no turn.
type nowhere struct{}

func (nowhere) Scheduler() *act.Scheduler { return nil }

// deliver gives p a message that is its own, or that stands for something that has happened: no bound refuses it.
// r is the reactor of this thread, if it is one. It reports whether the process was there.
func (p *Self[M]) deliver(r *reactor, m M) bool {
	w := p.lock()
	if w&states == dead {
		p.unlock(w)
		return false
	}
	p.rouse(p.put(w, m), r)
	return true
}

// Poke gives the process a turn, as a message would. It may be called on any goroutine, also by who has the Self
// outside of its turns.
func (p *Self[M]) Poke() { p.call(poked, nil) }
