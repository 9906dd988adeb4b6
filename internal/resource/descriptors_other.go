//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package resource

// Descriptors is not known here.
func Descriptors() int { return 0 }

// SpareDescriptor is not tried here.
func SpareDescriptor() error { return nil }
