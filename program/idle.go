package program

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
)

// The durations of the strategies of -idle.
const (
	// pollPause is the pause of "poll": an event waits half of it on average, and an idle scheduler takes a few percent of
	// a CPU.
	pollPause = time.Millisecond
	// hybridSpin is the spin of "hybrid": a few times what it costs to go to sleep and wake up, so that at worst a small
	// multiple of that is wasted.
	hybridSpin = 50 * time.Microsecond
)

// strategy returns the idle strategy of a value of -idle.
func strategy(name string) (act.Strategy, error) {
	switch name {
	case "interrupt":
		return nil, nil
	case "poll":
		return demon.Pause(pollPause), nil
	case "hybrid":
		return demon.Hybrid(hybridSpin), nil
	case "busy":
		return demon.Busy(), nil
	}
	return nil, fmt.Errorf("-idle must be interrupt, poll, hybrid or busy, not %q", name)
}
