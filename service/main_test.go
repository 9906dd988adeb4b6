package service_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// childVariable names the child that a test binary is to be instead of running tests.
const childVariable = "DAIMON_SERVICE_CHILD"

// children are other programs, for what only another process can show. Each gets an address.
var children = map[string]func(address string) error{}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		if err := children[name](os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	servertest.Main(m)
}

// playChild plays one of children in a process of its own and returns what it said and how it ended.
func playChild(t *testing.T, name, address string) (said string, err error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, address)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}
