package e2e

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/exectest"
)

// Where the kernel refuses io_uring, as in most containers, -engine uring says why, and auto serves without it. What was
// broken: auto logged nothing when the kernel knows no such call.
func TestWithoutIoUring(t *testing.T) {
	outside(t)
	for errno, says := range map[syscall.Errno]string{
		unix.EPERM:  "it is forbidden by a filter of system calls (seccomp), as containers have, or by kernel.io_uring_disabled",
		unix.ENOSYS: "the kernel is older than 5.1, or a filter of system calls hides it (seccomp)",
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			exectest.Refuse(t, unix.SYS_IO_URING_SETUP, errno)
			says = "netpoll: there is no io_uring here, " + says + ": " + errno.Error()
			exits(t, "echo", 1, "cannot listen on 127.0.0.1:0: monitor: "+says, "-addr", "127.0.0.1:0", "-engine", "uring")

			s := startEcho(t, example("echo").Command(t, "-addr", "127.0.0.1:0", "-engine", "auto", "-reactors", "2"))
			const line = "calls are made one by one"
			exectest.Eventually(t, patience, "many readable sockets at once", func() bool {
				all := make([]client, 50)
				for i := range all {
					all[i] = s.dial(t)
					require.NoError(t, ping(all[i], "hello"))
				}
				s.stopped(t, func() {
					for _, c := range all {
						_, err := io.WriteString(c, "hello")
						require.NoError(t, err)
					}
				})
				for _, c := range all {
					require.NoError(t, c.CloseWrite())
					heard, err := io.ReadAll(c)
					require.NoError(t, err)
					require.Equal(t, "hello", string(heard))
				}
				return strings.Contains(s.Said(), line)
			})
			s.Stop(t)
			require.Equal(t, 1, strings.Count(s.Said(), line), s.Said())
			require.Equal(t, 1, strings.Count(s.Said(), says))
		})
	}
}

// stopped calls do while the server is stopped.
func (s *server) stopped(t *testing.T, do func()) {
	exectest.Eventually(t, patience, "the stop", func() bool {
		s.Signal(t, unix.SIGSTOP) // once more, if somebody has let it go on
		return s.state(t) == "T"
	})
	do()
	s.Signal(t, unix.SIGCONT)
}
