package demon

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// Busy returns the strategy "busy": the thread never sleeps, it polls again and again. It uses a whole CPU for each
// scheduler even if there is nothing to do. It is meant for hardware that is dedicated to the program, with a spare CPU
// for Go's garbage collector. Set it as [act.Config].Idle.
func Busy() act.Strategy {
	return func(_ *act.Scheduler, present act.Idler) act.Idler { return busy{present} }
}

type busy struct{ present act.Idler }

func (b busy) Idle(time.Duration) { b.present.Idle(0) }

// Rest implements facts.Resting.
func (busy) Rest() facts.Rest { return facts.Polling }

// Interrupt need not wake anything: every Idle returns at once.
func (busy) Interrupt() {}
