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
	err := errors.Join(a.errs...)
	if len(a.errs) == 1 {
		err = a.errs[0]
	}
	a.to.settle(a.values, err)
	return act.Done
}

func (a *all[T]) Describe(d *act.Description) {
	if a.at < len(a.fs) {
		d.WaitsFor(fmt.Sprintf("a future, number %d of %d", a.at+1, len(a.fs)))
	}
}

func (a *all[T]) Close() error {
	_ = a.wait.Close()
	a.to.drop()
	return nil
}
