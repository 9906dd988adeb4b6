//go:build !linux

package pool

// sleeper has nobody wait: other systems have no such call, or none that is promised.
type sleeper struct{}

func (*sleeper) wake() bool         { return false }
func (*sleeper) wait(ns int64) bool { return false }
