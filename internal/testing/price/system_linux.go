package price

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that the calling thread has used.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// system has the look of a poller that finds nothing.
var system = []reference{{looks, 2000, 175}}

func looks(n int) {
	poller, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		panic(err)
	}
	defer unix.Close(poller)
	var event unix.EpollEvent
	for range n {
		_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(poller), uintptr(unsafe.Pointer(&event)), 1, 0, 0, 0)
		if errno != 0 {
			panic(errno)
		}
	}
}
