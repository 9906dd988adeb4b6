package gateway

import (
	"os"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// patience is what a client or a test waits for before it calls a program stuck.
const token = "nobody-knows"

const patience = exectest.Patience

// TestMain runs the tests, or a back end for them: see mortal.
func TestMain(m *testing.M) {
	if at := os.Getenv(backAt); at != "" {
		back(at)
		return
	}
	exectest.Main(m)
}

// outside begins a test.
func outside(t *testing.T) {
	t.Helper()
	tier.Need(t, tier.Full, "builds programs and uses them from outside")
}
