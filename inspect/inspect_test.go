package inspect

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVariable); dir != "" {
		crash(dir)
	}
	goleak.VerifyTestMain(m)
}
