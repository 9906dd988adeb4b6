package main

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
)

// futures combines values that will be there later. Within bounds the work itself, not only the wait for it, so no work
// goes on after the time has passed.
func futures(s *act.Scheduler, a, b string, report func([]string, error)) {
	get := func(address string) *future.Future[[]byte] {
		l := newList(address)
		return future.Do(s, listener.Within(patience, l), func() []byte { return l.text })
	}
	future.Map(future.All(s, get(a), get(b)), func(lists [][]byte) ([]string, error) {
		return merge(lists[0], lists[1]), nil
	}).Handle(report)
}
