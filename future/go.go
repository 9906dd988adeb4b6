package future

import "github.com/daimon-go/daimon/act"

// Go has fn called by the Group's Executor, where it may block, and returns a future, at home on s, of
// what it returns. Like the F of an act.Call, fn runs beside the turns of s, so it must touch only what
// it captured by value, and a panic or Goexit in it is a failure. Until fn has returned it holds Run; an
// order waits for it within its bounds, and if they are too narrow the future fails with ErrDropped.
func Go[T any](s *act.Scheduler, fn func() (T, error)) *Future[T] {
	call := &act.Call[T]{F: fn}
	return Do(s, call, func() T { return call.Value })
}
