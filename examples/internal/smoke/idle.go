package smoke

import (
	"slices"
	"testing"
)

// An Idle is the flags that choose an idle strategy.
type Idle []string

// With returns the flags with more behind them. Of a flag that is given twice the last counts.
func (i Idle) With(flags ...string) []string { return slices.Concat(i, flags) }

// Blocks tells whether a server without work sleeps until there is some. Under the other strategies its
// threads look now and then, or all the time: what they do at rest is the strategy's price and not a fault
// of the server, so bounds on it are for those that block.
func (i Idle) Blocks() bool { return i[1] == "interrupt" || i[1] == "hybrid" }

// UnderEachIdle runs test once under each idle strategy. Busy reactors never let go of their CPU, so unless
// the test asks for more there is only one: its clients need the others.
func UnderEachIdle(t *testing.T, test func(t *testing.T, idle Idle)) {
	for _, idle := range []Idle{
		{"-idle", "interrupt"},
		{"-idle", "poll"},
		{"-idle", "hybrid"},
		{"-idle", "busy", "-reactors", "1"},
	} {
		t.Run(idle[1], func(t *testing.T) { test(t, idle) })
	}
}
