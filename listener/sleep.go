package listener

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Sleep is an action that waits for the time For, counted from its first turn. During shutdown it goes on. A Sleep is
// used once; [act.Task.WakeAfter] is for deadlines that move.
type Sleep struct {
	For time.Duration // how long to wait, from the first turn; 0 or less is over at once

	timer act.Timer
	until time.Duration
	begun bool
}

// Act returns Wait until the time has passed on the scheduler's clock, and then Done.
func (s *Sleep) Act(t *act.Task) act.Directive {
	if !s.begun {
		s.begun = true
		t.WakeAfter(&s.timer, s.For)
		s.until = s.timer.When()
	}
	if t.Scheduler().Now() >= s.until {
		s.timer.Stop() // another cause may have been first in this pass
		return act.Done
	}
	if !s.timer.Armed() {
		t.WakeAt(&s.timer, s.until)
	}
	return act.Wait
}

// Close stops the timer, so that it does not wake the task. It returns nil.
func (s *Sleep) Close() error {
	s.timer.Stop()
	return nil
}

// Within returns an action that runs a for at most d, counted from its first turn. If a has not finished by then, it is
// closed if it is an io.Closer, and the action fails with an error that wraps os.ErrDeadlineExceeded and says what a
// waited for. An [act.Call] is closed at once, and its result is ignored. A function of [act.Task.Offload] cannot be left:
// when it has returned late, a has one more turn, in which it may finish, and otherwise Within fails. If a offloads another
// function in that turn, Within fails when that has returned. If a finishes in time, it is closed when the whole is. A
// shutdown request is passed on to a.
func Within(d time.Duration, a act.Action) act.Action {
	if a == nil {
		panic("listener: Within of a nil action")
	}
	return &within{Child: act.Child{Action: a}, sleep: Sleep{For: d}}
}

type within struct {
	act.Child
	sleep   Sleep
	overdue bool  // it has offloaded a function when it was late
	err     error // it is late
}

func (w *within) Act(t *act.Task) act.Directive {
	if w.err != nil {
		return t.Fail(w.err)
	}
	late := w.sleep.Act(t) == act.Done // first, so that the time begins with the first turn
	d := act.Wait
	if !w.overdue {
		d = w.Child.Act(t)
	}
	switch {
	case d.Finished():
		_ = w.sleep.Close()
	case late && d == act.Async:
		w.overdue = true
	case late:
		w.err = fmt.Errorf("listener: not finished within %v%s: %w", w.sleep.For, w.waited(), os.ErrDeadlineExceeded)
		_ = w.Close() // the error that matters is the other one
		return t.Fail(w.err)
	}
	return d
}

// waited says what the action waits for, as far as it says so itself.
func (w *within) waited() string {
	var d act.Description
	w.Child.Describe(&d)
	if all := d.Internals().Waits.All(); len(all) > 0 {
		return ", waiting for " + strings.Join(all, ", ")
	}
	return ""
}

// Abandon forwards to the bounded action, which has offloaded something.
func (w *within) Abandon() act.Action {
	_ = w.sleep.Close()
	return w.Child.Abandon()
}

func (w *within) Close() error {
	_ = w.sleep.Close()
	return w.Child.Close()
}
