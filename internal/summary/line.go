// Package summary has lines in the log that all schedulers of a Group write together, at most one in a second, of what may
// happen often.
package summary

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
)

// Line is such a line. T holds the facts of one second.
type Line[T any] struct {
	write   func(log *zap.Logger, of T)
	writers *act.Local[*writer[T]]

	mu    sync.Mutex // held for a few instructions
	begun map[*act.Group]*T
}

// New returns a Line, which is kept for the whole process as an act.Local is. write writes it.
func New[T any](write func(log *zap.Logger, of T)) *Line[T] {
	l := &Line[T]{write: write, begun: map[*act.Group]*T{}}
	l.writers = act.NewLocal(func(s *act.Scheduler) *writer[T] { return &writer[T]{line: l, s: s} })
	return l
}

// Add has add note an event on s. The line is written a second after its first event, or when the scheduler of that one is
// closed. A scheduler that is closed begins none. It is called on the thread of s.
func (l *Line[T]) Add(s *act.Scheduler, add func(of *T)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.begun[s.Group()]
	if of == nil {
		w := l.writers.Get(s) // panics if s is closed: so nothing is begun before
		if w.closed {
			return
		}
		s.CallAt(&w.timer, s.Now()+time.Second, w)
		of = new(T)
		l.begun[s.Group()] = of
	}
	add(of)
}

// writer is a scheduler that may have begun a line, which it writes then.
type writer[T any] struct {
	line   *Line[T]
	s      *act.Scheduler
	timer  act.Timer
	closed bool // nobody would write a line
}

// Expire writes the line.
func (w *writer[T]) Expire() {
	l := w.line
	l.mu.Lock()
	of := *l.begun[w.s.Group()]
	delete(l.begun, w.s.Group())
	l.mu.Unlock()
	l.write(w.s.Logger(), of)
}

// Close writes the line if its second is not over.
func (w *writer[T]) Close() error {
	if w.timer.Armed() {
		w.Expire()
	}
	w.closed = true
	return nil
}
