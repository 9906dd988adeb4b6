package servertest

import (
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/act"
)

// Said returns, in the order of their places, the waits of the waiting tasks and demons of s, as text. It is called on the
// thread of s.
func Said(s *act.Scheduler) (all []string) {
	s.Internals().EachTask(1, func(x *act.Task) bool {
		if s.Internals().Waiting(x) {
			var d act.Description
			d.Of(x.Action())
			all = append(all, d.Internals().Waits.All()...)
		}
		return true
	})
	return all
}

// UntilSaid steps until Said is want.
func (l *Stepped) UntilSaid(want ...string) {
	l.T.Helper()
	defer func() {
		if l.T.Failed() {
			l.T.Logf("said is %q", Said(l.S))
		}
	}()
	l.Until(fmt.Sprintf("they say %q", want), func() bool { return slices.Equal(Said(l.S), want) })
}

// CountsOf returns what s and its Locals have counted. It is called on the thread of s.
func CountsOf(s *act.Scheduler) map[string]uint64 {
	all := map[string]uint64{}
	s.Internals().Counts(func(name string, n uint64) { all[name] += n })
	return all
}
