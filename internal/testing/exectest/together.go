//go:build !linux

package exectest

import "os/exec"

func dieTogether(*exec.Cmd) {}
