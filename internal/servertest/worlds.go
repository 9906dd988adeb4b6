package servertest

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/tier"
)

// Worlds is the TestMain of a package of simulated worlds. quick, full and long are how many worlds of a scenario run in
// each tier, unless SIM_SEEDS says so. The tier full runs under the race detector.
func Worlds(m *testing.M, quick, full, long int) {
	StartRuntimePoller()
	if os.Getenv("SIM_SEEDS") == "" {
		os.Setenv("SIM_SEEDS", strconv.Itoa(tier.Choose(quick, full, long)))
	}
	goleak.VerifyTestMain(m)
}
