package future

import "github.com/daimon-go/daimon/act"

// Go has the Group's Executor call fn, which may block, and returns a future of its result whose home is s. Like the F
// of an [act.Call], fn runs in parallel with the turns of s: it must touch only what it captured by value, and a panic
// or Goexit in it is a failure. Run does not return before fn does. After an order Run waits for fn within the order's
// bounds; if fn takes longer, the future fails with [act.ErrDropped]. Go must be called on the thread of s.
func Go[T any](s *act.Scheduler, fn func() (T, error)) *Future[T] {
	call := &act.Call[T]{F: fn}
	return Do(s, call, func() T { return call.Value })
}
