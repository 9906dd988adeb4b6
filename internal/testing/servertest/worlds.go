package servertest

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// Main is the TestMain of a package whose tests run schedulers and their clients. A busy scheduler lets go of no processor, so
// there are more of them than it needs.
func Main(m *testing.M) {
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// Worlds is the TestMain of a package of simulated worlds. few is how many worlds of a scenario run in the tiers quick and
// full, and many how many in long, unless SIM_SEEDS says so.
func Worlds(m *testing.M, few, many int) {
	StartRuntimePoller()
	if os.Getenv("SIM_SEEDS") == "" {
		os.Setenv("SIM_SEEDS", strconv.Itoa(tier.Choose(few, few, many)))
	}
	goleak.VerifyTestMain(m)
}
