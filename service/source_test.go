package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// A history lists the turns, a letter each: S the service, A, B, C its tasks.
type history struct{ strings.Builder }

// task returns a task of so many turns.
func (h *history) task(letter string, turns int) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		h.WriteString(letter)
		if turns--; turns > 0 {
			return act.Yield
		}
		return act.Done
	})
}

// alone is a scheduler by itself, and what it logs.
func alone(t *testing.T) (*act.Scheduler, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	s := act.New(act.Config{Logger: zap.New(core)})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, logs
}

// source supplies a task for each letter, and then answers with last.
func (h *history) source(letters string, turns int, last act.Directive) func(*act.Task) (act.Action, act.Directive) {
	return func(*act.Task) (act.Action, act.Directive) {
		h.WriteString("S")
		a := h.task(letters[:1], turns)
		if letters = letters[1:]; letters == "" {
			return a, last
		}
		return a, act.Yield
	}
}

// A source that can supply all at once still has one turn a pass: a pass comes when nothing is ready, or
// after 64 turns of tasks.
func TestASourceHasATurnAPass(t *testing.T) {
	s, _ := alone(t)
	var h history
	s.Install(service.New(h.source("ABC", 100, act.Done)))
	require.NoError(t, s.Run())
	require.Equal(t, "S"+strings.Repeat("A", 64)+"S", h.String()[:66])
	for _, letter := range []string{"A", "B", "C"} {
		require.Equal(t, 100, strings.Count(h.String(), letter))
	}
	require.Equal(t, 3, strings.Count(h.String(), "S"))
}

func TestASourceWaitsUntilItIsWoken(t *testing.T) {
	s, _ := alone(t)
	var h history
	waits := 0
	s.Install(service.New(func(t *act.Task) (act.Action, act.Directive) {
		h.WriteString("S")
		if waits++; waits < 3 {
			go t.Waker().Remote()()
			return h.task("A", 1), act.Wait
		}
		return nil, act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 3, strings.Count(h.String(), "S"))
	require.Equal(t, 2, strings.Count(h.String(), "A"))
}

func TestASourceThatFails(t *testing.T) {
	for _, row := range []struct {
		name     string
		next     func(h *history, t *act.Task) (act.Action, act.Directive)
		ran      string
		reported string
	}{
		{"with an error, after a last task", func(h *history, t *act.Task) (act.Action, act.Directive) {
			return h.task("A", 2), t.Fail(errors.New("run dry"))
		}, "AA", "run dry"},
		{"by a panic", func(*history, *act.Task) (act.Action, act.Directive) { panic("oops") }, "", "panic: oops"},
		{"without a Directive", func(*history, *act.Task) (act.Action, act.Directive) { return nil, 0 }, "", "not a valid Directive"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, logs := alone(t)
			var h history
			s.Spawn(h.task("B", 2))
			s.Install(service.New(func(t *act.Task) (act.Action, act.Directive) { return row.next(&h, t) }))
			require.NoError(t, s.Run())
			require.Equal(t, row.ran, strings.ReplaceAll(h.String(), "B", ""))
			require.Equal(t, 2, strings.Count(h.String(), "B"), "the others go on")
			require.Equal(t, 1, logs.Len())
			require.Contains(t, logs.All()[0].ContextMap()["error"], row.reported)
		})
	}
}

// On an order it makes no more tasks, whether it was yielding or waiting; what it has made goes on.
func TestASourceEndsOnAnOrder(t *testing.T) {
	for _, verdict := range []act.Directive{act.Yield, act.Wait} {
		t.Run(verdict.String(), func(t *testing.T) {
			s, _ := alone(t)
			var h history
			supplied, told := 0, false
			s.Install(service.New(func(t *act.Task) (act.Action, act.Directive) {
				if told {
					panic("a turn after the end")
				}
				t.Waker()
				if supplied++; supplied == 3 || verdict == act.Wait {
					told = true
					s.Shutdown(shutdown.Policy{})
				}
				return h.task("A", 10), verdict
			}))
			require.NoError(t, s.Run())
			require.Equal(t, 10*supplied, h.Len())
		})
	}
}

// An order that was given before the source had a turn keeps it from making anything.
func TestASourceWithAnOrderBeforeItsFirstTurnMakesNothing(t *testing.T) {
	s, _ := alone(t)
	s.Install(service.New(func(*act.Task) (act.Action, act.Directive) {
		panic("too late")
	}))
	s.Shutdown(shutdown.Policy{})
	require.NoError(t, s.Run())
}

func TestNewWithoutASourcePanics(t *testing.T) {
	require.PanicsWithValue(t, "service: New without a source", func() { service.New(nil) })
}
