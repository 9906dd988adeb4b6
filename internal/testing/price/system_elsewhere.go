//go:build !linux

package price

import "time"

var started = time.Now()

// threadTime is the time that has passed: what the calling thread has used is not to be had everywhere.
func threadTime() time.Duration { return time.Since(started) }

var system []reference
