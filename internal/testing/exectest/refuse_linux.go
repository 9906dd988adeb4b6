package exectest

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Refuse has the kernel refuse a system call with an error, by a filter as containers have: see seccomp(2). It holds for the
// calling goroutine, which is that of t, and for the programs that it starts. The goroutine keeps its thread from then on, and
// the thread ends with it.
func Refuse(t testing.TB, call uint32, errno syscall.Errno) {
	t.Helper()
	runtime.LockOSThread()
	filter := []unix.SockFilter{ // of struct seccomp_data, which begins with the number of the call
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	require.Zero(t, err)
}
