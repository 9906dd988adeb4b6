package future

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
)

// Map returns a future of fn's result for the value of f. fn is called as a callback, on the thread of f's home
// scheduler (see the package documentation). If f fails, the result fails with the same error and fn is not called.
func Map[T, U any](f *Future[T], fn func(T) (U, error)) *Future[U] {
	m := &mapping[T, U]{from: f, to: New[U](f.s), fn: fn}
	register(f, m, &m.waiter)
	return m.to
}

// Handle calls fn with the outcome of f when f is resolved, as a callback, on the thread of f's home scheduler. Either
// err is nil or v is the zero T. A panic in fn is logged, as in any task.
func (f *Future[T]) Handle(fn func(v T, err error)) {
	h := &handler[T]{from: f, fn: fn}
	register(f, h, &h.waiter)
}

// register spawns a callback of f and appends it to the callbacks.
func register[T any](f *Future[T], a act.Action, w *waiter) {
	f.s.Spawn(a)
	f.join(&f.callbacks, w)
}

// mapping resolves to with fn's result for the value of from.
type mapping[T, U any] struct {
	kind
	waiter
	from *Future[T]
	to   *Future[U]
	fn   func(T) (U, error)
}

func (m *mapping[T, U]) Act(t *act.Task) act.Directive {
	if d := m.from.inOrder(t, &m.waiter); d != act.Done {
		return d
	}
	m.to.settle(m.call())
	return act.Done
}

// call returns the outcome of to. A panic becomes an error; a Goexit goes on to the scheduler.
func (m *mapping[T, U]) call() (u U, err error) {
	v, err := m.from.Value()
	if err != nil {
		return u, err
	}
	defer func() {
		if v := recover(); v != nil {
			err = panics.Recovered(v)
		}
	}()
	return m.fn(v)
}

func (m *mapping[T, U]) Describe(d *act.Description) { d.WaitsFor("a future, for " + act.Name(m.fn)) }

// Close is called however the task ends. After the callback has run it does nothing.
func (m *mapping[T, U]) Close() error {
	m.from.leave(&m.waiter)
	m.to.drop()
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
	h.from.leave(&h.waiter)
	return nil
}
