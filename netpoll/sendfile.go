//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// sendFile goes through the runtime and not to the kernel directly, because it may sleep: pages that are not in the
// page cache are read from the disk, and the thread sleeps for so long.
func sendFile(fd int, f *os.File, offset int64, n int) (int, error) {
	if n <= 0 {
		return 0, nil // the BSDs take 0 to mean the whole file
	}
	for {
		sent, err := unix.Sendfile(fd, int(f.Fd()), &offset, n)
		runtime.KeepAlive(f) // its finalizer closes the descriptor
		switch {
		case err == nil:
			return sent, nil
		case sent > 0 && (err == unix.EAGAIN || err == unix.EINTR): // the BSDs report both at once
			return sent, nil
		case err != unix.EINTR:
			return 0, err
		}
	}
}
