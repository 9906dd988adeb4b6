package act

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Local is storage with one value for each scheduler, made without a lock when Get is first called there. Through it an
// action finds the monitor of its own scheduler. It is meant for package variables:
//
//	var engines = act.NewLocal(newEngine)
//
// A value that is an io.Closer is closed with the scheduler, the latest made first. If the value has a method Drop(), the
// scheduler calls it when an order drops what is left; Drop ends at once what the value keeps going without a task, such
// as the last bytes of a connection. The value stays usable, until Close has returned and all functions that
// tasks have offloaded have.
type Local[T any] struct {
	index int
	make  func(*Scheduler) T
}

// localCount is how many Locals there are in the process; they are never freed.
var localCount atomic.Int64

// NewLocal returns a Local whose values are made by make, on the scheduler's thread. make may ask for other Locals.
func NewLocal[T any](make func(*Scheduler) T) *Local[T] {
	return &Local[T]{int(localCount.Add(1) - 1), make}
}

// Get returns the value of s. It is called on the thread of s.
func (l *Local[T]) Get(s *Scheduler) T {
	s.touch()
	if l.index < len(s.locals) {
		if v, ok := s.locals[l.index].(*T); ok {
			return *v
		}
	}
	return *l.fill(s, l.make(s))
}

// Put sets the value of s before its first use. After that it panics, since the old value may be in use.
func (l *Local[T]) Put(s *Scheduler, v T) {
	s.touch()
	if l.index < len(s.locals) && s.locals[l.index] != nil {
		panic("act: Local.Put after the first use")
	}
	l.fill(s, v)
}

func (l *Local[T]) fill(s *Scheduler, v T) *T {
	if s.closed {
		panic("act: a Local was used on a closed Scheduler")
	}
	for len(s.locals) <= l.index {
		s.locals = append(s.locals, nil)
	}
	p := &v
	s.locals[l.index] = p
	s.made = append(s.made, v)
	return p
}

// eachLocal calls f for the values of Locals that implement I, the latest made first, and logs panics.
func eachLocal[I any](s *Scheduler, f func(I)) {
	for _, v := range slices.Backward(s.made) {
		if x, ok := v.(I); ok {
			if p := s.guard(func() { f(x) }); p != nil {
				s.report(label(fmt.Sprintf("Local of type %T", v)), p)
			}
		}
	}
}
