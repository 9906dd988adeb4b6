package future

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
)

// Map returns a future of fn's result for the value of f. fn is called as a callback, on the thread of f's home
// scheduler (see the package documentation). If f fails, the result fails with the same error and fn is not called.
func Map[T, U any](f *Future[T], fn func(T) (U, error)) *Future[U] {
	return derive(f, fn, func(v T, err error) (u U, _ error) {
		if err != nil {
			return u, err
		}
		return fn(v)
	})
}

// Recover returns a future of f's value or, if f fails, of fn's result for the error. fn is called as a callback, on
// the thread of f's home scheduler.
func (f *Future[T]) Recover(fn func(error) (T, error)) *Future[T] {
	return derive(f, fn, func(v T, err error) (T, error) {
		if err != nil {
			return fn(err)
		}
		return v, nil
	})
}

// Handle calls fn with the outcome of f when f is resolved, as a callback, on the thread of f's home scheduler. Either
// err is nil or v is the zero T. A panic in fn is logged, as in any task.
func (f *Future[T]) Handle(fn func(v T, err error)) {
	h := &handler[T]{from: f, fn: fn}
	register(f, h, &h.waiter)
}

// Then returns a future with the outcome of the future that fn returns for f's value, and which may have another home.
// Use it for a second asynchronous step; [Map] is for a fn that returns at once. fn is called as a callback, on the
// thread of f's home scheduler. If f fails, the result fails with the same error and fn is not called.
func Then[T, U any](f *Future[T], fn func(T) *Future[U]) *Future[U] {
	c := &chain[T, U]{from: f, to: New[U](f.s), fn: fn}
	register(f, c, &c.waiter)
	return c.to
}

func derive[T, U any](f *Future[T], given any, fn func(T, error) (U, error)) *Future[U] {
	c := &callback[T, U]{from: f, to: New[U](f.s), fn: fn, given: given}
	register(f, c, &c.waiter)
	return c.to
}

// register spawns a callback of f and appends it to the callbacks.
func register[T any](f *Future[T], a act.Action, w *waiter) {
	f.s.Spawn(a)
	f.local.callbacks.join(w)
}

// callback resolves to with fn's result for the outcome of from.
type callback[T, U any] struct {
	kind
	waiter
	from  *Future[T]
	to    *Future[U]
	fn    func(T, error) (U, error)
	given any // the function that fn calls
}

func (c *callback[T, U]) Act(t *act.Task) act.Directive {
	if d := c.from.inOrder(t, &c.waiter); d != act.Done {
		return d
	}
	c.to.settle(caught(c.fn, c.from))
	return act.Done
}

func (c *callback[T, U]) Describe(d *act.Description) {
	d.WaitsFor("a future, for " + act.Name(c.given))
}

// Close is called however the task ends. After the callback has run it does nothing.
func (c *callback[T, U]) Close() error {
	c.leave()
	c.to.drop()
	return nil
}

// handler calls fn with the outcome of from.
type handler[T any] struct {
	kind
	waiter
	from *Future[T]
	fn   func(T, error)
}

func (h *handler[T]) Act(t *act.Task) act.Directive {
	if d := h.from.inOrder(t, &h.waiter); d != act.Done {
		return d
	}
	h.fn(h.from.Value())
	return act.Done
}

func (h *handler[T]) Describe(d *act.Description) { d.WaitsFor("a future, for " + act.Name(h.fn)) }

func (h *handler[T]) Close() error {
	h.leave()
	return nil
}

// chain resolves to with the outcome of the future that fn returns for the value of from.
type chain[T, U any] struct {
	kind
	waiter
	from  *Future[T]
	to    *Future[U]
	fn    func(T) *Future[U]
	inner *Future[U] // nil: fn has not been called
	wait  await      // for inner
}

func (c *chain[T, U]) Act(t *act.Task) act.Directive {
	if c.inner == nil {
		if d := c.from.inOrder(t, &c.waiter); d != act.Done {
			return d
		}
		inner, err := caught(c.begin, c.from)
		if err != nil {
			c.to.settle(*new(U), err)
			return act.Done
		}
		c.inner, c.wait.core = inner, &inner.core
	}
	if d := c.wait.Act(t); d == act.Wait {
		return d
	}
	c.to.settle(c.inner.Value())
	return act.Done
}

func (c *chain[T, U]) begin(v T, err error) (*Future[U], error) {
	if err != nil {
		return nil, err
	}
	inner := c.fn(v)
	if inner == nil {
		panic("future: the function given to Then returned no future")
	}
	return inner, nil
}

func (c *chain[T, U]) Describe(d *act.Description) {
	if c.inner == nil {
		d.WaitsFor("a future, for " + act.Name(c.fn))
	} else {
		d.WaitsFor("the future that came from " + act.Name(c.fn))
	}
}

func (c *chain[T, U]) Close() error {
	c.leave()
	c.wait.leave()
	c.to.drop()
	return nil
}

// caught calls fn with the outcome of from and turns a panic into an error. A Goexit goes on to the scheduler.
func caught[T, U any](fn func(T, error) (U, error), from *Future[T]) (u U, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panics.Recovered(v)
		}
	}()
	return fn(from.Value())
}
