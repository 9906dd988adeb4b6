package future

import (
	"errors"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
)

var (
	// ErrResolved is returned to whoever resolves a future that was resolved before, or is just being
	// resolved by another goroutine. The future keeps its first outcome, the caller what it came with.
	ErrResolved = errors.New("future: already resolved")
	// ErrPending is the error of the Value of a future that is not resolved.
	ErrPending = errors.New("future: not yet resolved")
	// ErrDropped is the failure of a future that will not come, because the task that should have resolved
	// it was dropped at an end.
	ErrDropped = errors.New("future: dropped before it was resolved")
	// ErrNone is the failure of Any of no futures.
	ErrNone = errors.New("future: none to wait for")
)

// Future is a value, or a failure, that is resolved once. It is made by New and used by pointer.
// Resolve, Fail, Value and Resolved may be called from any goroutine, Await and its leaf on any
// scheduler, all else on the thread of its home scheduler.
type Future[T any] struct {
	core
	value T // written by who has claimed the future, before state says resolved
}

// New returns a pending future that is at home on s: its callbacks run there. Any goroutine.
func New[T any](s *act.Scheduler) *Future[T] {
	if s == nil {
		panic("future: New needs a scheduler, for the callbacks")
	}
	f := &Future[T]{}
	f.s = s
	return f
}

// Resolve gives f its value. It returns ErrResolved if f has an outcome already.
func (f *Future[T]) Resolve(v T) error {
	if !f.claim() {
		return ErrResolved
	}
	f.value = v
	f.publish()
	return nil
}

// Fail gives f a failure instead of a value. It returns ErrResolved if f has an outcome already. A nil
// err is a bug and panics.
func (f *Future[T]) Fail(err error) error {
	if err == nil {
		panic("future: Fail without an error")
	}
	return f.fail(err, false)
}

// Value returns the outcome: a value, or the zero T with the failure, or with ErrPending.
func (f *Future[T]) Value() (T, error) {
	var none T
	switch {
	case !f.resolved():
		return none, ErrPending
	case f.failed != nil:
		return none, f.failed.look()
	}
	return f.value, nil
}

// Resolved tells whether f has its outcome, be it a failure, without looking at it.
func (f *Future[T]) Resolved() bool { return f.resolved() }

// settle gives f the outcome of a function. Somebody may have been faster, say with a time-out: then
// that one's outcome stands.
func (f *Future[T]) settle(v T, err error) {
	if err != nil {
		_ = f.fail(err, false)
	} else {
		_ = f.Resolve(v)
	}
}

// core is what does not depend on the type of the value.
type core struct {
	s      *act.Scheduler // home
	state  atomic.Uint32
	failed *failure // written as value is
	home   port
	away   atomic.Pointer[port] // those of other schedulers that wait or did: only ever added to
}

// The states follow each other.
const (
	pending  uint32 = iota
	claimed         // somebody is writing the outcome
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

// drop is for a future whose task leaves. The Cut tells of the task, so nobody need look at this.
func (c *core) drop() { _ = c.fail(ErrDropped, true) }

// publish makes the outcome readable and tells the schedulers that wait. Who begins to wait announces
// that first and looks at the state afterwards: one of the two sees the other.
func (c *core) publish() {
	c.state.Store(resolved)
	c.home.tell()
	for p := c.away.Load(); p != nil; p = p.next {
		p.tell()
	}
}
