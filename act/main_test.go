package act_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childVariable names the child that a test binary is to be instead of running tests.
const childVariable = "DAIMON_ACT_CHILD"

// children are programs whose end is what a test is about: each runs in a process of its own.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		play, known := children[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no such child:", name)
			os.Exit(3)
		}
		play()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// runChild plays one of children in a process of its own and returns what it wrote and how it ended.
func runChild(t *testing.T, name string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childVariable+"="+name,
		"GORACE=atexit_sleep_ms=0") // the detector waits a second for late reports; the child has none
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}
