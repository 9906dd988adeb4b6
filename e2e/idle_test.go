package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/tier"
)

// An idle is the flags that choose an idle strategy.
type idle []string

// with returns the flags and more behind them. If a flag is given twice the last counts.
func (i idle) with(flags ...string) []string { return slices.Concat(i, flags) }

// blocks reports whether a server without work sleeps until there is some. Under the other strategies its threads
// look now and then, or all the time: what they do at rest is the price of the strategy, so bounds on it are for
// those that block.
func (i idle) blocks() bool { return i[1] == "interrupt" || i[1] == "hybrid" }

// idles are the strategies. Busy reactors never let go of their CPU, so unless the test asks for more there is only
// one: its clients need the others.
var idles = []idle{
	{"-idle", "interrupt"},
	{"-idle", "poll"},
	{"-idle", "hybrid"},
	{"-idle", "busy", "-reactors", "1"},
}

// underEachIdle runs test once under each idle strategy. Below the Long tier that is the default and the one that differs from
// it most, but for TestEchoesWhole.
func underEachIdle(t *testing.T, test func(t *testing.T, idle idle)) {
	t.Helper()
	all := strings.HasPrefix(t.Name(), "TestEchoesWhole/")
	for _, idle := range idles {
		t.Run(idle[1], func(t *testing.T) {
			if !all && idle[1] != "interrupt" && idle[1] != "busy" {
				tier.Need(t, tier.Long, "other idle strategies")
			}
			test(t, idle)
		})
	}
}
