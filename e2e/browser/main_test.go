package browser

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/exectest"
)

// TestMain makes this process the parent of all that its children leave behind (prctl(2)): so it can see whether they
// have, and no zombies stay where process 1 waits for no child, as in many containers.
func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "prctl(PR_SET_CHILD_SUBREAPER):", err)
		os.Exit(1)
	}
	exectest.Main(m)
}
