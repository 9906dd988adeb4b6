package demon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
)

// What ParseStrategy gives the strategies that need a duration.
const (
	// PollPause is that of "poll": an event waits half a millisecond on average, and an idle scheduler
	// takes a few percent of a CPU.
	PollPause = time.Millisecond
	// HybridSpin is that of "hybrid": some times what going to sleep and waking up costs, so that at worst a
	// small multiple of that is spent in vain.
	HybridSpin = 50 * time.Microsecond
)

var strategies = []struct {
	name string
	make func() act.Strategy
}{
	{"interrupt", func() act.Strategy { return nil }},
	{"poll", func() act.Strategy { return Pause(PollPause) }},
	{"hybrid", func() act.Strategy { return Hybrid(HybridSpin) }},
	{"busy", Busy},
}

// Strategies returns the names that ParseStrategy knows, for the usage text of a flag.
func Strategies() []string {
	var names []string
	for _, st := range strategies {
		names = append(names, st.name)
	}
	return names
}

// ParseStrategy returns the strategy of that name, for act.Config.Idle. That of "interrupt" is nil, as in
// the zero Config. The error of an unknown name lists those there are, in words that can follow the name of
// a flag.
func ParseStrategy(name string) (act.Strategy, error) {
	i := slices.Index(Strategies(), name)
	if i < 0 {
		last := len(strategies) - 1
		return nil, fmt.Errorf("%s or %s, not %q", strings.Join(Strategies()[:last], ", "), strategies[last].name, name)
	}
	return strategies[i].make(), nil
}

func mustBePositive(what string, d time.Duration) {
	if d <= 0 {
		panic(fmt.Sprintf("demon: %s needs a time above 0, not %v", what, d))
	}
}
