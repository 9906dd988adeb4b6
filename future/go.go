package future

import "github.com/daimon-go/daimon/act"

// Go calls fn, which may block, on another goroutine, through the Group's [act.Executor], and returns a future of its
// result whose home is s. Like the F of an [act.Call], fn runs in parallel with the turns of s: it must touch only what
// it captured by value. A panic in fn fails the future. Run does not return before fn does. During shutdown Run waits
// for fn within the bounds of the policy; if fn takes longer, the future fails with [act.ErrDropped]. Go must be called
// on the thread of s.
func Go[T any](s *act.Scheduler, fn func() (T, error)) *Future[T] {
	call := &act.Call[T]{F: fn}
	return Do(s, call, func() T { return call.Value })
}
