//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package resource

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors returns how many descriptors the process may have (RLIMIT_NOFILE; Go raises the soft limit to the hard one
// when a program starts); 0 if that is not known or there is no limit.
func Descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || int64(limit.Cur) <= 0 || int64(limit.Cur) > 1<<30 {
		return 0
	}
	return int(limit.Cur)
}

// SpareDescriptor returns the error of opening another descriptor, nil if that works.
func SpareDescriptor() error {
	syscall.ForkLock.RLock() // a child must not inherit it
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
