package process

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/chain"
	"github.com/daimon-go/daimon/internal/panics"
)

// Exit ends the process with its present turn, in which it receives no more messages. A Fail, a panic or a returned
// act.Failed in the same turn takes precedence.
func (p *Self[M]) Exit() {
	if p.over == 0 {
		p.over = Normal
	}
}

// Fail ends the process with its present turn, as Failed with err. It returns act.Failed. It panics if err is nil.
func (p *Self[M]) Fail(err error) act.Directive {
	if err == nil {
		panic("process: Fail without an error")
	}
	p.setFailure(err)
	p.over = Failed
	return act.Failed
}

// Own makes the process close x when it has ended for any reason, before its Action is closed, on any thread. Closers are closed
// in reverse order of Own. It is for the turns of the process.
func (c *core) Own(x io.Closer) {
	w := c.lock()
	c.more().owned = append(c.more().owned, x)
	c.unlock(w)
}

// Release undoes the latest [Self.Own] of x, and reports whether the process owned x. It is for the turns of the process.
func (c *core) Release(x io.Closer) bool {
	w := c.lock()
	defer c.unlock(w)
	if c.rare != nil {
		for i, o := range slices.Backward(c.rare.owned) {
			if o == x {
				c.rare.owned = slices.Delete(c.rare.owned, i, i+1)
				return true
			}
		}
	}
	return false
}

// errUnsaid is the error of an action that returned Failed without Fail.
var errUnsaid = errors.New("process: failed without saying why")

func (c *core) setFailure(err error) {
	w := c.lock()
	c.more().err = err
	c.unlock(w)
}

// kill ends c before its next turn.
func (c *core) kill(r *runner, why Reason, err error) bool {
	w := c.lock()
	if w&states == dead || w&killed != 0 {
		c.unlock(w)
		return false
	}
	c.why = why
	if err != nil {
		c.more().cause = err
	}
	c.activate(w|killed, r)
	return true
}

// end ends c, which runs here, or nowhere any more. why is 0 if c was killed.
func (r *runner) end(c *core, why Reason) {
	if c.lasting && c.rare.child.outlasts(r, why) || !c.die(why) {
		return
	}
	r.current = nil
	r.gone++
	action := c.body.action()
	if n := c.body.empty(); n > 0 {
		add(&r.dropped, int64(n))
	}
	if c.home > 0 {
		c.sys.registries[c.home-1].remove(c)
	}
	r.closeOwned(c)
	if x, ok := action.(io.Closer); ok {
		r.close(c, x)
	}
	var observer *chain.Node[endObserver]
	var free []waiter
	if x := c.rare; x != nil {
		w := c.lock()
		observer, free = x.observers.TakeAll(), x.waiters.take(math.MaxInt, nil)
		c.unlock(w)
	}
	if observer == nil && free == nil && why != Failed {
		return
	}
	r.publishCounts() // before observers are notified of the end
	notice := c.notice()
	if observer == nil && why == Failed {
		r.s.Logger().Error("a process has failed, and nothing observes it", zap.Stringer("process", c), zap.Error(notice.Err))
	}
	r.notify(c, observer, notice, false)
	r.notify(c, observer, notice, true)
	r.release(free)
}

// notify tells the observers of c from first on: the links, or all others.
func (r *runner) notify(c *core, first *chain.Node[endObserver], n Notice, links bool) {
	for x := first; x != nil; x = x.Next {
		if w, ok := x.Of.(*watched); links == (ok && w.isLink) {
			r.protect(c, func() { x.Of.ended(r, n) })
		}
	}
}

// die makes c dead, and reports false if it was. From then on only its end touches its mailbox: all other threads lock
// it, and see first that it is dead.
func (c *core) die(why Reason) bool {
	if c.word.Load()&states == dead {
		return false
	}
	c.over = why
	if !c.word.CompareAndSwap(running, dead) { // it was signalled meanwhile, or does not run
		c.lock()
		c.unlock(dead)
	}
	return true
}

// closeOwned closes what c owns. No turn of c is under way, or comes before it has returned.
func (r *runner) closeOwned(c *core) {
	if c.rare == nil {
		return
	}
	owned := c.rare.owned
	c.rare.owned = nil
	for _, x := range slices.Backward(owned) {
		r.close(c, x)
	}
}

func (r *runner) close(c *core, x io.Closer) {
	r.protect(c, func() {
		if err := x.Close(); err != nil {
			r.s.Logger().Warn("closing a process failed", zap.Stringer("process", c), zap.Error(err))
		}
	})
}

// protect calls f, which belongs to a process that has ended, and logs a panic.
func (r *runner) protect(c *core, f func()) {
	if r.s.Internals().Crash() {
		f()
		return
	}
	defer func() {
		if v := recover(); v != nil {
			r.report("the end of a process", c, v)
		}
	}()
	f()
}

// report logs and counts a panic of c, or of its end.
func (r *runner) report(what string, c *core, v any) *act.Panic {
	p := panics.Recovered(v)
	r.s.Logger().Error(what+" has panicked", zap.Stringer("process", c), zap.Any("value", p.Value), zap.ByteString("stack", p.Stack))
	r.s.Internals().Panicked(what, p.Stack)
	return p
}

// Notice says that a process has ended, and why. [Watch] sends one as a message, and the future of [Ended] resolves to one.
type Notice struct {
	// Of is the process that has ended, as a Ref. It is equal to the Ref that was watched.
	Of AnyRef
	// Reason is why the process has ended.
	Reason Reason
	// Err is the error of Self.Fail for Failed, an *act.Panic for Panicked, and for Linked an error that wraps that of
	// the linked process; else nil.
	Err error
}

// notice returns the Notice of a process that has ended.
func (c *core) notice() Notice {
	w := c.lock()
	defer c.unlock(w)
	n := Notice{Of: c.body.ref(), Reason: c.over}
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

// linked returns the error of a process that ends with the one that n is about. In a chain of links it is about the first.
func (n Notice) linked() error {
	if n.Reason == Linked {
		return n.Err
	}
	if n.Err != nil {
		return fmt.Errorf("process: %v has ended: %s: %w", n.Of, n.Reason, n.Err)
	}
	return fmt.Errorf("process: %v has ended: %s", n.Of, n.Reason)
}
