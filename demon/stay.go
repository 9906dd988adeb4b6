package demon

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Stay returns a demon that only keeps [act.Scheduler.Run] from returning until shutdown. Install it on a scheduler
// whose work comes from other goroutines by Post.
func Stay() act.Demon { return &stay{} }

type stay struct{ told bool }

// Act takes its Waker and drops it: only a shutdown makes this demon ready.
func (y *stay) Act(t *act.Task) act.Directive {
	if y.told {
		return act.Done
	}
	t.Waker()
	return act.Wait
}

// Stop ends the demon in its next turn.
func (y *stay) Stop(*act.Task, shutdown.Order) { y.told = true }

func (y *stay) Describe(d *act.Description) { d.WaitsFor("shutdown") }

func (y *stay) String() string { return "demon.Stay" }
