package demon

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Stay returns a demon that does nothing but keep Run from returning until an order. It is for a scheduler that serves what
// other goroutines post to it.
func Stay() act.Demon { return &stay{} }

type stay struct{ told bool }

// Act asks for its Waker and drops it: only an order makes this demon ready.
func (y *stay) Act(t *act.Task) act.Directive {
	if y.told {
		return act.Done
	}
	t.Waker()
	return act.Wait
}

// Stop ends the demon in its next turn.
func (y *stay) Stop(*act.Task, shutdown.Order) { y.told = true }

func (y *stay) Describe(d *act.Description) { d.WaitsFor("an order") }

func (y *stay) String() string { return "demon.Stay" }
