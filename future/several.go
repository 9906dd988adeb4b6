package future

import (
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
)

// All returns a future of the values of all fs, in their order. Its home is s; the fs may have other homes. Like
// act.All it waits for all fs even if some fail, and then fails with their errors, joined in order. Without fs the
// value is an empty slice. All must be called on the thread of s.
func All[T any](s *act.Scheduler, fs ...*Future[T]) *Future[[]T] {
	a := &all[T]{fs: fs, to: New[[]T](s), values: make([]T, 0, len(fs))}
	s.Spawn(a)
	return a.to
}

// errNone is the error of Any without futures.
var errNone = errors.New("future: none to wait for")

// Any returns a future of the first value that one of the fs is resolved with; if several are resolved at once, the
// first in their order counts. Its home is s; the fs may have other homes. If all fail, it fails with their errors,
// joined in order. Without fs it fails. Each wake-up checks all pending fs, so Any is for a handful. Any must be called
// on the thread of s.
func Any[T any](s *act.Scheduler, fs ...*Future[T]) *Future[T] {
	a := &first[T]{fs: fs, to: New[T](s), waits: make([]await, len(fs)), errs: make([]error, len(fs))}
	for i, f := range fs {
		a.waits[i].core = &f.core
	}
	s.Spawn(a)
	return a.to
}

// all waits for one future after the other. Since it needs all of them, that takes no longer.
type all[T any] struct {
	kind
	fs     []*Future[T]
	to     *Future[[]T]
	at     int
	wait   await // for fs[at]
	values []T
	errs   []error
}

func (a *all[T]) Act(t *act.Task) act.Directive {
	for ; a.at < len(a.fs); a.at++ {
		f := a.fs[a.at]
		a.wait.core = &f.core
		if d := a.wait.Act(t); d == act.Wait {
			return d
		}
		v, err := f.Value()
		a.values = append(a.values, v)
		if err != nil {
			a.errs = append(a.errs, err)
		}
	}
	a.to.settle(a.values, joined(a.errs))
	return act.Done
}

func (a *all[T]) Describe(d *act.Description) {
	if a.at < len(a.fs) {
		d.WaitsFor(fmt.Sprintf("a future, number %d of %d", a.at+1, len(a.fs)))
	}
}

func (a *all[T]) Close() error {
	a.wait.leave()
	a.to.drop()
	return nil
}

// first waits for all futures at once.
type first[T any] struct {
	kind
	fs     []*Future[T]
	to     *Future[T]
	waits  []await
	errs   []error // nil: pending
	failed int
}

func (a *first[T]) Act(t *act.Task) act.Directive {
	for i, f := range a.fs {
		if a.errs[i] != nil {
			continue
		}
		switch a.waits[i].Act(t) {
		case act.Done:
			a.to.settle(f.Value())
			return act.Done
		case act.Failed:
			a.errs[i] = t.Err()
			a.failed++
		}
	}
	if a.failed < len(a.fs) {
		return act.Wait
	}
	if a.failed == 0 {
		a.errs = []error{errNone}
	}
	a.to.settle(*new(T), joined(a.errs))
	return act.Done
}

func (a *first[T]) Describe(d *act.Description) {
	d.WaitsFor(fmt.Sprintf("one of %d futures", len(a.fs)-a.failed))
}

func (a *first[T]) Close() error {
	for i := range a.waits {
		a.waits[i].leave()
	}
	a.to.drop()
	return nil
}

// joined joins errors. A single one is returned as it is.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
