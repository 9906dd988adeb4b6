package monitor_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// childVariable names the child that a test binary is to be instead of running tests.
const childVariable = "DAIMON_MONITOR_CHILD"

// children are programs whose end is what a test is about: each runs in a process of its own.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	if play := children[os.Getenv(childVariable)]; play != nil {
		play()
		os.Exit(0)
	}
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// runChild plays one of children in a process of its own and returns what it wrote and how it ended.
func runChild(t *testing.T, name string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}
