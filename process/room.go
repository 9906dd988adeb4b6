package process

import (
	"context"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/chain"
)

// waiter waits for room in a mailbox: a process that has sent beyond the bound, a task, or a goroutine.
type waiter interface {
	// roomFree is called once, on any goroutine. r is the runner there, if it is one's.
	roomFree(r *runner)
	// hasEnded reports whether no room needs to be kept for it any more.
	hasEnded() bool
}

// waiters wait for room in one mailbox, in order. Under the lock of its process.
type waiters struct {
	chain.List[waiter]
	tasks map[*act.Task]*chain.Node[waiter]
}

// join adds w at the end. A task that is waiting already keeps its place.
func (x *waiters) join(w waiter) *chain.Node[waiter] {
	t, isTask := w.(waitingTask)
	if e := x.tasks[t.task]; isTask && e != nil {
		e.Of = w
		return e
	}
	e := &chain.Node[waiter]{Of: w}
	x.Append(e)
	if isTask {
		if x.tasks == nil {
			x.tasks = map[*act.Task]*chain.Node[waiter]{}
		}
		x.tasks[t.task] = e
	}
	return e
}

// leave takes e out, and reports whether it was still there.
func (x *waiters) leave(e *chain.Node[waiter]) bool {
	was := e.Remove()
	if t, isTask := e.Of.(waitingTask); isTask && was {
		delete(x.tasks, t.task)
	}
	return was
}

// take takes out the first waiters, one for each message that there is room for, and appends them to free.
func (x *waiters) take(room int, free []waiter) []waiter {
	for e := x.First; e != nil && len(free) < room; e = x.First {
		if x.leave(e); !e.Of.hasEnded() {
			free = append(free, e.Of)
		}
	}
	return free
}

// A process that has sent beyond the bound of a mailbox has a debt there until the mailbox has room.

// addDebt notes one debt of c, in its turn. It may be paid already.
func (c *core) addDebt() {
	w := c.lock()
	c.more().debts++
	c.unlock(w)
	c.overran = true
}

// roomFree implements waiter: it pays one debt of c.
func (c *core) roomFree(r *runner) {
	w := c.lock()
	x := c.more()
	if x.debts--; x.debts > 0 || w&blocked == 0 {
		c.unlock(w)
		return
	}
	c.activate(w&^blocked, r)
}

// hasEnded implements waiter.
func (c *core) hasEnded() bool {
	w := c.word.Load()
	return w&killed != 0 && !c.lasting || w&states == dead
}

// blockedSend is the [act.Blocked] of a mailbox.
type blockedSend struct {
	to interface { // a Self
		process() *core
		full(w uint32) bool
	}
}

func (b *blockedSend) Error() string {
	return fmt.Sprintf("process: the mailbox of %v is full", b.to.process())
}

func (b *blockedSend) Describe(d *act.Description) {
	d.WaitsFor("room in the mailbox of " + b.to.process().String())
}

// Arm wakes t when there is room, or when the process has ended.
func (b *blockedSend) Arm(t *act.Task) {
	w := t.Waker()
	if b.join(waitingTask{w.Remote(), t}) == nil {
		w.Wake()
	}
}

// wait waits until there is room, or the process has ended, or ctx has.
func (b *blockedSend) wait(ctx context.Context) error {
	c := make(chan struct{})
	e := b.join(waitingGoroutine(c))
	if e == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		b.giveUp(e)
		return ctx.Err()
	}
}

// join adds w to the waiters, or returns nil if there is nothing to wait for.
func (b *blockedSend) join(w waiter) *chain.Node[waiter] {
	c := b.to.process()
	now := c.lock()
	if now&states == dead || !b.to.full(now) {
		c.unlock(now)
		return nil
	}
	e := c.more().waiters.join(w)
	c.unlock(now | roomWanted)
	return e
}

// giveUp takes e out. If e was told already that there is room, the next waiter is told instead.
func (b *blockedSend) giveUp(e *chain.Node[waiter]) {
	c := b.to.process()
	w := c.lock()
	var free []waiter
	if x := &c.more().waiters; !x.leave(e) && w&states != dead && !b.to.full(w) {
		free = x.take(1, nil)
	}
	c.unlock(w)
	for _, next := range free {
		next.roomFree(nil)
	}
}

// waitingTask is a task with its latest waker.
type waitingTask struct {
	wake func()
	task *act.Task
}

func (w waitingTask) roomFree(*runner) { w.wake() }
func (w waitingTask) hasEnded() bool   { return false }

type waitingGoroutine chan struct{}

func (w waitingGoroutine) roomFree(*runner) { close(w) }
func (w waitingGoroutine) hasEnded() bool   { return false }
