package future

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/chain"
)

var (
	// ErrResolved is returned by Resolve and Fail when the future already has an outcome, or is being resolved by
	// another goroutine. The future keeps its first outcome.
	ErrResolved = errors.New("future: already resolved")
	// ErrPending is returned by [Future.Value] while the future is not resolved.
	ErrPending = errors.New("future: not yet resolved")
)

// Future is a value that becomes available later: it is resolved once, with a value or an error, its outcome. Make one
// with [New], [Go] or [Do]. Resolve, Fail, Value, Resolved and Await may be called on any goroutine; all other methods,
// and the functions of this package that take a Future, are for the thread of the future's home scheduler.
type Future[T any] struct {
	core
	value T // written by the goroutine that has claimed the future, before state is resolved
}

// New returns a pending future whose home is s: its callbacks run there. It panics if s is nil. Any goroutine.
func New[T any](s *act.Scheduler) *Future[T] {
	if s == nil {
		panic("future: New needs a scheduler, for the callbacks")
	}
	f := &Future[T]{}
	f.s = s
	return f
}

// Resolve sets the value of f and wakes the tasks that wait. It returns [ErrResolved] if f already has an outcome. Any
// goroutine.
func (f *Future[T]) Resolve(v T) error {
	if !f.claim() {
		return ErrResolved
	}
	f.value = v
	f.publish()
	return nil
}

// Fail sets the error of f and wakes the tasks that wait. It returns [ErrResolved] if f already has an outcome, and
// panics if err is nil. Any goroutine.
func (f *Future[T]) Fail(err error) error {
	if err == nil {
		panic("future: Fail without an error")
	}
	return f.fail(err, false)
}

// Value returns the outcome of f without waiting: its value, or the zero T and its error, or the zero T and
// [ErrPending]. Any goroutine.
func (f *Future[T]) Value() (T, error) {
	var none T
	switch {
	case !f.resolved():
		return none, ErrPending
	case f.failed != nil:
		return none, f.failed.see()
	}
	return f.value, nil
}

// Wait waits until f is resolved, or ctx ends, and returns the outcome of f or the error of ctx. It is for a goroutine that may
// block, never for the thread of a scheduler.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.whenResolved():
		return f.Value()
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Resolved reports whether f has a value or an error. It does not count as having seen the error, so an error that nobody
// reads is still logged. Any goroutine.
func (f *Future[T]) Resolved() bool { return f.resolved() }

// settle resolves f with the results of a function, unless f was resolved before, by a time-out for example.
func (f *Future[T]) settle(v T, err error) {
	if err != nil {
		_ = f.fail(err, false)
	} else {
		_ = f.Resolve(v)
	}
}

// core is the part of a Future that does not depend on the type of the value.
type core struct {
	s      *act.Scheduler // the home
	state  atomic.Uint32
	failed *failure // written as value is

	mu        sync.Mutex          // held for as long as it takes to wake the tasks in a list
	done      chan struct{}       // closed by publish, for goroutines; nil: none waits
	waiters   chain.List[*waiter] // each leaves by itself
	callbacks chain.List[*waiter] // in order of registration; each leaves when its turn comes
}

// The states of a future, in their order.
const (
	pending  uint32 = iota
	claimed         // a goroutine is writing the outcome
	resolved        // it can be read
)

func (c *core) resolved() bool { return c.state.Load() == resolved }

func (c *core) claim() bool { return c.state.CompareAndSwap(pending, claimed) }

func (c *core) fail(err error, seen bool) error {
	if !c.claim() {
		return ErrResolved
	}
	c.failed = newFailure(c, err, seen)
	c.publish()
	return nil
}

// drop fails a future whose task is dropped. The Cut names the task, so the failure counts as seen.
func (c *core) drop() { _ = c.fail(act.ErrDropped, true) }

// whenResolved returns a channel that is closed when c is resolved.
func (c *core) whenResolved() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resolved() { // publish has closed c.done, or is about to
		done := make(chan struct{})
		close(done)
		return done
	}
	if c.done == nil {
		c.done = make(chan struct{})
	}
	return c.done
}

// publish makes the outcome readable and wakes the tasks that wait. A task joins a list, with its Waker, before it reads
// the state, so one of the two sees the other.
func (c *core) publish() {
	c.state.Store(resolved)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range []*chain.List[*waiter]{&c.waiters, &c.callbacks} {
		for n := l.First; n != nil; n = n.Next {
			n.Of.bell.Wake()
		}
	}
	if c.done != nil {
		close(c.done)
	}
}
