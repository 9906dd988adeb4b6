package listener

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Sleep is a leaf that lets time pass: For, from its first turn on. On an order it sleeps on.
type Sleep struct {
	For time.Duration

	timer act.Timer
	until time.Duration
	begun bool
}

// Act is Done when the time has passed, never before.
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

// Close forgets the sleep.
func (s *Sleep) Close() error {
	s.timer.Stop()
	return nil
}

// Within bounds a in time, from its first turn on: if a has not finished by then it is closed, if it is an
// io.Closer, and the whole fails with an error that is os.ErrDeadlineExceeded. While a function that a has
// offloaded runs, a cannot be closed: the time is looked at when it has returned. An a that has finished
// is closed with the whole. An order is passed on to a.
func Within(d time.Duration, a act.Action) act.Action {
	return &within{a: a, sleep: Sleep{For: d}}
}

type within struct {
	a       act.Action
	sleep   Sleep
	err     error
	verdict act.Directive
	closed  bool
}

func (w *within) Act(t *act.Task) act.Directive {
	if !w.verdict.Finished() {
		late := w.sleep.Act(t) == act.Done // first, so that the time begins with the first turn
		d := w.a.Act(t)
		switch {
		case d == act.Failed:
			w.err = t.Err()
		case d == act.Done, d == act.Async, !late:
		default:
			d, w.err = act.Failed, fmt.Errorf("listener: not finished within %v: %w", w.sleep.For, os.ErrDeadlineExceeded)
			w.verdict = d
			_ = w.Close() // nobody is left to be told of its error
		}
		w.verdict = d
	}
	if w.verdict.Finished() {
		_ = w.sleep.Close()
	}
	if w.err != nil {
		return t.Fail(w.err)
	}
	return w.verdict
}

// String names what is bounded.
func (w *within) String() string { return act.Name(w.a) }

func (w *within) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := w.a.(act.Stopper); ok && !w.verdict.Finished() {
		st.Stop(t, o)
	}
}

// Abandon passes on to what is bounded, which has offloaded something.
func (w *within) Abandon() act.Action {
	w.closed = true
	_ = w.sleep.Close()
	return act.AbandonAction(w.a)
}

func (w *within) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true // and w.a stays, for String
	_ = w.sleep.Close()
	if !w.verdict.Finished() { // called again, it says so
		w.verdict, w.err = act.Failed, net.ErrClosed
	}
	if c, ok := w.a.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
