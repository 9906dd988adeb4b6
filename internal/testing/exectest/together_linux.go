package exectest

import (
	"os/exec"
	"syscall"
)

// dieTogether has the kernel kill the program when this process ends, as after a test that timed out.
func dieTogether(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
