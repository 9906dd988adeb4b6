//go:build unix

package upgrade

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Otherwise the new program would take the end of the pipe for that of this process, and take over.
func TestTheNewProgramHasEndedBeforeItsPipeIsClosed(t *testing.T) {
	for range 10 { // if the order were wrong, the reader might be too late to see it
		cmd := exec.Command("sleep", "60")
		require.NoError(t, cmd.Start())
		c, read, write, err := pipes()
		require.NoError(t, err)
		c.process = cmd.Process
		read.Fd() // makes it block, so that the kernel wakes the reader
		at := make(chan error)
		go func() {
			_, _ = io.ReadAll(read)
			at <- syscall.Kill(cmd.Process.Pid, 0)
		}()
		require.EqualError(t, c.refuse(errors.New("not today")), "not today")
		require.Equal(t, syscall.ESRCH, <-at)
		require.NoError(t, read.Close())
		require.NoError(t, write.Close())
	}
}
