package demon

import (
	"time"

	"github.com/daimon-go/daimon/act"
)

// Busy is the strategy "busy": the thread never blocks, it looks again and again. It takes a whole CPU
// for each scheduler also when there is nothing to do, and is meant for hardware that is dedicated to
// the program, with a CPU to spare for Go's collector.
func Busy() act.Strategy {
	return func(_ *act.Scheduler, present act.Idler) act.Idler { return busy{present} }
}

type busy struct{ present act.Idler }

func (b busy) Idle(time.Duration) { b.present.Idle(0) }

// Interrupt has nobody to wake: every Idle returns at once.
func (busy) Interrupt() {}
