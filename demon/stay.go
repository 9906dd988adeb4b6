package demon

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Stay is a demon that does nothing but hold Run until an order: for a scheduler that lives on what
// other goroutines post to it, and would otherwise return whenever it has nothing left.
func Stay() act.Demon { return &stay{} }

type stay struct{ told bool }

// Act takes its Waker and gives it to nobody: only an order makes this demon ready.
func (y *stay) Act(t *act.Task) act.Directive {
	if y.told {
		return act.Done
	}
	t.Waker()
	return act.Wait
}

// Stop ends the demon in its next turn.
func (y *stay) Stop(*act.Task, shutdown.Order) { y.told = true }

func (y *stay) String() string { return "demon.Stay" }
