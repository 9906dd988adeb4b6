package act

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Local keeps one value for each scheduler, made without a lock when Get is first called there. An action uses it to
// find what belongs to its own scheduler, such as a cache or a monitor. It is meant for package variables:
//
//	var engines = act.NewLocal(newEngine)
//
// A value that is an io.Closer is closed with the scheduler, the latest made first. If the value has a method Drop(),
// the scheduler calls it when a shutdown drops what is left; Drop ends at once what the value keeps going without a
// task, such as sending the last bytes of a connection. The value stays usable until Close and all functions that tasks
// have offloaded have returned.
type Local[T any] struct {
	index    int
	newValue func(*Scheduler) T
}

// localCount is how many Locals there are in the process; they are never freed.
var localCount atomic.Int64

// NewLocal returns a Local. The first Get on a scheduler calls newValue there, on its thread; newValue may use other
// Locals. A Local is never freed, so make it once, as a package variable.
func NewLocal[T any](newValue func(*Scheduler) T) *Local[T] {
	return &Local[T]{int(localCount.Add(1) - 1), newValue}
}

// Get returns the value of s, and makes it in the first call. It is called on the thread of s, and panics once s is
// closed.
func (l *Local[T]) Get(s *Scheduler) T {
	s.touch()
	if l.index < len(s.locals) {
		if v, ok := s.locals[l.index].(*T); ok {
			return *v
		}
	}
	return l.fill(s, l.newValue(s))
}

// Put sets the value of s before its first use, as in a set-up function or a test. It panics after the first use, since
// the old value may be in use. It is called on the thread of s.
func (l *Local[T]) Put(s *Scheduler, v T) {
	s.touch()
	if l.index < len(s.locals) && s.locals[l.index] != nil {
		panic("act: Local.Put after the first use")
	}
	l.fill(s, v)
}

func (l *Local[T]) fill(s *Scheduler, v T) T {
	if s.closed {
		panic("act: a Local was used on a closed Scheduler")
	}
	for len(s.locals) <= l.index {
		s.locals = append(s.locals, nil)
	}
	s.locals[l.index] = &v
	s.made = append(s.made, v)
	return v
}

// eachLocal calls f for the values of Locals that implement I, the latest made first, and logs panics.
func eachLocal[I any](s *Scheduler, f func(I)) {
	for _, v := range slices.Backward(s.made) {
		if x, ok := v.(I); ok {
			if p := s.guard(func() { f(x) }); p != nil {
				s.report(fmt.Sprintf("Local of type %T", v), p)
			}
		}
	}
}
