package browser

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// program is the path of examples/httpd, built for all tests.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "browser-test-")
	if err == nil {
		program, err = compile(dir)
	}
	if err == nil {
		err = adopt()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// adopt makes this process the parent of all that its children leave behind (prctl(2)): so it can tell whether they
// have, and no zombies stay where process 1 does not wait for anybody, as in many containers.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", err)
	}
	return nil
}
