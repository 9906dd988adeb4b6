package demon

import (
	"fmt"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
)

// The durations of the strategies that ParseStrategy returns.
const (
	// pollPause is the pause of "poll": an event waits half of it on average, and an idle scheduler takes a few percent of
	// a CPU.
	pollPause = time.Millisecond
	// hybridSpin is the spin of "hybrid": a few times what it costs to go to sleep and wake up, so that at worst a small
	// multiple of that is wasted.
	hybridSpin = 50 * time.Microsecond
)

// Strategies are the names that ParseStrategy knows, for the usage text of a flag. The first is that of the zero Config.
var Strategies = [...]string{"interrupt", "poll", "hybrid", "busy"}

// ParseStrategy returns the strategy of that name, for act.Config.Idle: nil for "interrupt". The error for an unknown name
// lists the known ones, in words that can follow the name of a flag.
func ParseStrategy(name string) (act.Strategy, error) {
	switch name {
	case "interrupt":
		return nil, nil
	case "poll":
		return Pause(pollPause), nil
	case "hybrid":
		return Hybrid(hybridSpin), nil
	case "busy":
		return Busy(), nil
	}
	last := len(Strategies) - 1
	return nil, fmt.Errorf("%s or %s, not %q", strings.Join(Strategies[:last], ", "), Strategies[last], name)
}

func mustBePositive(what string, d time.Duration) {
	if d <= 0 {
		panic(fmt.Sprintf("demon: %s needs a time above 0, not %v", what, d))
	}
}
