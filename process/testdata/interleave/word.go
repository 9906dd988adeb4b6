package process

import "github.com/daimon-go/daimon/internal/steps"

// This file replaces the one of the same name in the tester of interleavings.

type (
	word    = steps.Uint32
	counter = steps.Int64
)

// backOff waits until another thread has written something.
func backOff() { steps.Await() }
