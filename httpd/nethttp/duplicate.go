//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package nethttp

import (
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns f with a descriptor of its own, which is closed by itself.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
