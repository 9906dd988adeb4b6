package fetch

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
)

// Future says what becomes of values that are not there yet. The time bounds the work, and so nobody is left
// working for a value that nobody waits for any more.
func Future(s *act.Scheduler, a, b string, report func([]string, error)) {
	get := func(address string) *future.Future[[]byte] {
		l := newList(address)
		return future.Do(s, listener.Within(Patience, l), func() []byte { return l.text })
	}
	future.Map(future.All(s, get(a), get(b)), func(lists [][]byte) ([]string, error) {
		return merge(lists[0], lists[1]), nil
	}).Handle(report)
}
