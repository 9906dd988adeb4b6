package process

import "github.com/daimon-go/daimon/internal/steps"

// This file stands in the place of the one with the same name while the tester of interleavings runs.

type (
	word    = steps.Uint32
	counter = steps.Int64
)

// backOff gives up the turn until somebody else has changed something.
func backOff() { steps.Await() }
