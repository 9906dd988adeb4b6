package readiness_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// turnEnd is a function for AtTurnEnd.
type turnEnd func()

func (f turnEnd) TurnEnd() { f() }

// waits returns a task that does first, waits, and counts in woken the turns that it gets after that.
func waits(first func(t *act.Task), woken *int) act.Func {
	begun := false
	return func(t *act.Task) act.Directive {
		if begun {
			*woken++
			return act.Done
		}
		begun = true
		first(t)
		return act.Wait
	}
}
