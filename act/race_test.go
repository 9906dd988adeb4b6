package act_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/race"
)

// strayed is what another goroutine might call by mistake. None of it blocks or allocates anything that
// matters; each is called on another goroutine while its scheduler is in a turn.
var strayed = map[string]func(t *act.Task, w act.Waker, tm *act.Timer){
	"Task.Waker":             func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Waker() },
	"Task.WakeAt":            func(t *act.Task, _ act.Waker, tm *act.Timer) { t.WakeAt(tm, time.Hour) },
	"Task.Fail":              func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Fail(errStray) },
	"Task.Err":               func(t *act.Task, _ act.Waker, _ *act.Timer) { _ = t.Err() },
	"Task.Order":             func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Order() },
	"Task.Own":               func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Own(&closer{func() error { return nil }}) },
	"Task.Release":           func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Release(nil) },
	"Waker.Wake":             func(_ *act.Task, w act.Waker, _ *act.Timer) { w.Wake() },
	"Waker.Remote":           func(_ *act.Task, w act.Waker, _ *act.Timer) { w.Remote() },
	"Timer.Stop":             func(_ *act.Task, _ act.Waker, tm *act.Timer) { tm.Stop() },
	"Scheduler.Spawn":        func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Scheduler().Spawn(finished{}) },
	"Scheduler.Attach":       func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Scheduler().Attach(attach(elsewhere())) },
	"Scheduler.AtTurnEnd":    func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Scheduler().Internals().AtTurnEnd(turnEnd(func() {})) },
	"Scheduler.CallAt":       func(t *act.Task, _ act.Waker, tm *act.Timer) { t.Scheduler().CallAt(tm, time.Hour, nil) },
	"Scheduler.Hold":         func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Scheduler().Internals().KeepRunning(0) },
	"Scheduler.Now":          func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Scheduler().Now() },
	"Scheduler.NextDeadline": func(t *act.Task, _ act.Waker, _ *act.Timer) { t.Scheduler().NextDeadline() },
	"Local.Get":              func(t *act.Task, _ act.Waker, _ *act.Timer) { otherLocal.Get(t.Scheduler()) },
}

var otherLocal = act.NewLocal(func(*act.Scheduler) int { return 7 })

var errStray = fmt.Errorf("stray")

type finished struct{}

func (finished) Act(*act.Task) act.Directive { return act.Done }

func elsewhere() *act.Scheduler { return act.New(act.Config{}) }

func init() {
	for name, call := range strayed {
		children[name] = func() { beside(call) }
	}
}

// beside makes a call on another goroutine while a turn goes on, which uses its scheduler meanwhile and
// does not end before the call has returned.
func beside(call func(*act.Task, act.Waker, *act.Timer)) {
	s := act.New(act.Config{})
	otherLocal.Get(s)
	var tm act.Timer
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		w := t.Waker()
		t.WakeAt(&tm, time.Hour)
		t.Own(&closer{func() error { return nil }})
		returned := make(chan struct{})
		go func() {
			call(t, w, &tm)
			close(returned)
		}()
		s.Now() // unordered with what the other goroutine does
		<-returned
		return act.Done
	}))
	fmt.Println("ran:", s.Run())
}

// The race detector reports a method that is not for other goroutines when another goroutine calls it,
// whatever it does inside. Without the detector it does nothing.
func TestACallFromAForeignGoroutineIsReported(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(strayed)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := runChild(t, name)
			if race.Enabled {
				require.Error(t, err)
				require.Contains(t, out, "WARNING: DATA RACE")
				require.Contains(t, out, "(*Scheduler).touch")
				return
			}
			require.NoError(t, err, out)
			require.Equal(t, "ran: <nil>\n", out)
		})
	}
}
