package coro

import "time"

// WithPatience sets how long a stopped body may run, until restore.
func WithPatience(d time.Duration) (restore func()) {
	before := patience
	patience = d
	return func() { patience = before }
}
