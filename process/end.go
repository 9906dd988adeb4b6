package process

import (
	"errors"
	"fmt"
	"io"
	"math"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/panics"
)

// Exit ends the process with its present turn, in which it receives no more. The first Exit counts; a Fail, a panic or
// the verdict Failed in the same turn counts more.
func (p *Self[M]) Exit() {
	if p.over == 0 {
		p.over = Normal
	}
}

// Exit ends p as Self.Exit does, and sends value to another process: no bound refuses that, and it comes before any
// Notice.
func Exit[M, V any](p *Self[M], to Ref[V], value V) {
	if p.over == 0 && to.p != nil && !to.p.deliver(p.on, value) {
		p.sys.count(p.on)
	}
	p.Exit()
}

// errUnsaid stands for the reason of an action that answered Failed without Fail.
var errUnsaid = errors.New("process: failed without saying why")

// Fail ends the process with its present turn, and says why. It returns act.Failed.
func (p *Self[M]) Fail(err error) act.Directive {
	if err == nil {
		panic("process: Fail without an error")
	}
	p.failure(err)
	p.over = Failed
	return act.Failed
}

// failure keeps why the process ends.
func (c *core) failure(err error) {
	w := c.lock()
	c.more().err = err
	c.unlock(w)
}

// Kill is AnyRef's.
func (to Ref[M]) Kill() bool { return to.p != nil && to.p.Kill() }

// Kill is that of Ref.
func (c *core) Kill() bool { return c.kill(nil, Killed, nil) }

// kill has c end before its next turn.
func (c *core) kill(r *reactor, why Reason, err error) bool {
	w := c.lock()
	if w&states == dead || w&killed != 0 {
		c.unlock(w)
		return false
	}
	c.why = why
	if err != nil {
		c.more().cause = err
	}
	c.rouse(w|killed, r)
	return true
}

// fail ends c after a panic.
func (r *reactor) fail(c *core, p *act.Panic) {
	r.s.Logger().Error("a process has panicked", zap.Stringer("process", c), zap.Any("value", p.Value), zap.ByteString("stack", p.Stack))
	c.failure(p)
	r.end(c, Panicked)
}

// end is the end of c, which runs here, or nowhere any more. Without a reason it is that of the kill.
func (r *reactor) end(c *core, why Reason) {
	if !c.die(why) {
		return
	}
	r.current = nil
	r.gone++
	acting := c.body.action()
	if n := c.body.empty(); n > 0 {
		add(&r.dropped, int64(n))
	}
	c.strike()
	if x, ok := acting.(io.Closer); ok {
		r.close(c, x)
	}
	list, free := c.heirs()
	if list == nil && free == nil && why != Failed {
		return
	}
	r.count() // before anybody hears of it
	notice := c.notice()
	if list == nil && why == Failed {
		r.s.Logger().Error("a process has failed, and nobody wants to know", zap.Stringer("process", c), zap.Error(notice.Err))
	}
	for list != nil {
		x := list
		list, x.prev, x.next = x.next, nil, nil
		r.guard(c, func() { x.ender.ended(r, notice) })
	}
	r.release(free)
}

// die makes c dead, and reports false if it was. From then on only its end touches its mailbox: all others, who have
// locked it, see that first.
func (c *core) die(why Reason) bool {
	if c.word.Load()&states == dead {
		return false
	}
	c.over = why
	if !c.word.CompareAndSwap(running, dead) { // something has come meanwhile, or it is not running
		c.lock()
		c.unlock(dead)
	}
	return true
}

// heirs are those who are tied to a process that has ended, and who wait for room in its mailbox. They are told once.
func (c *core) heirs() (list *tie, free []waiter) {
	if c.rare == nil {
		return nil, nil
	}
	w := c.lock()
	defer c.unlock(w)
	return c.takeTies(), c.rare.line.take(math.MaxInt, nil)
}

func (r *reactor) close(c *core, x io.Closer) {
	r.guard(c, func() {
		if err := x.Close(); err != nil {
			r.s.Logger().Warn("closing a process failed", zap.Stringer("process", c), zap.Error(err))
		}
	})
}

// guard calls what belongs to a process that is not there any more.
func (r *reactor) guard(c *core, f func()) {
	if hook.Crashes(r.s) {
		f()
		return
	}
	defer func() {
		if v := recover(); v != nil {
			p := panics.Recovered(v)
			r.s.Logger().Error("the end of a process has panicked", zap.Stringer("process", c), zap.Any("value", p.Value), zap.ByteString("stack", p.Stack))
		}
	}()
	f()
}

// notice is that of a process that has ended, or of nobody.
func (c *core) notice() Notice {
	if c == nil {
		return Notice{Of: Ref[struct{}]{}, Reason: Stopped}
	}
	w := c.lock()
	defer c.unlock(w)
	n := Notice{Of: c.body.party(), Reason: c.over}
	if n.Reason == 0 {
		n.Reason = c.why
	}
	if x := c.rare; x != nil {
		switch n.Reason {
		case Failed, Panicked:
			n.Err = x.err
		case Linked:
			n.Err = x.cause
		}
	}
	if n.Reason == Failed && n.Err == nil {
		n.Err = errUnsaid
	}
	return n
}

// linked is the failure of who ends with the one that n is about. Of a chain it tells of the first.
func (n Notice) linked() error {
	if n.Reason == Linked {
		return n.Err
	}
	if n.Err != nil {
		return fmt.Errorf("process: %v has ended: %s: %w", n.Of, n.Reason, n.Err)
	}
	return fmt.Errorf("process: %v has ended: %s", n.Of, n.Reason)
}

// Ended returns a future that is resolved when the process has ended, at once if it has already. While it is alive it
// is the same one for all who ask, so who resolves it does that for all of them. A process that sleeps does not end on an
// order before all tasks have; so a task that awaits the end, and is no Stopper, waits for the terms of the order. Any
// goroutine.
func Ended(of AnyRef) *future.Future[Notice] {
	c := of.process()
	if c == nil {
		panic("process: Ended of nobody")
	}
	f, asked := c.endFuture()
	if !asked {
		newWatch(c, nil, nil, func(_ *reactor, n Notice) { _ = f.Resolve(n) })
	}
	return f
}

// endFuture is what Ended has returned before, or a new future.
func (c *core) endFuture() (f *future.Future[Notice], asked bool) {
	w := c.lock()
	defer c.unlock(w)
	if c.rare != nil && c.rare.end != nil {
		return c.rare.end, true
	}
	f = future.New[Notice](c.sys.group.Schedulers()[0])
	if w&states != dead {
		c.more().end = f
	}
	return f, false
}
