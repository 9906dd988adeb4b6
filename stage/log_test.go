package stage_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// worked is an engine with one task that has worked on it as long as it wanted to, and what it has logged.
func worked(t *testing.T, s stage.Store, p stage.ProcessorFunc) *observer.ObservedLogs {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	e := engineOf(t, s, 2, p, func(cfg *stage.Config) {
		cfg.Logger, cfg.Attempts = zap.New(core), 2
		cfg.Backoff = func(int) time.Duration { return 0 }
	})
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	for n := 1; n > 0; {
		n, err = e.Fire(t.Context())
		require.NoError(t, err)
		inTime(t, func() { require.NoError(t, e.Wait(context.Background())) })
	}
	require.NoError(t, e.Stop(shutdown.Now{}))
	for _, entry := range logs.All() {
		fields := entry.ContextMap()
		require.Equal(t, "task", fields["kind"])
		require.EqualValues(t, id, fields["task"])
	}
	return logs
}

func TestAFailureIsLoggedAsAWarning(t *testing.T) {
	logs := worked(t, memory.New(nil), func(context.Context, *stage.Task) (stage.Commit, error) {
		return nil, errors.New("no luck")
	}).All()
	require.Len(t, logs, 2)
	for i, entry := range logs {
		require.Equal(t, zapcore.WarnLevel, entry.Level)
		require.Equal(t, "a stage has failed", entry.Message)
		fields := entry.ContextMap()
		require.Equal(t, "0+", fields["stage"])
		require.EqualValues(t, i+1, fields["attempt"])
		require.Equal(t, i == 0, fields["again"])
		require.Equal(t, "no luck", fields["error"])
	}
}

func TestAPanicIsLoggedAsAnErrorWithItsStack(t *testing.T) {
	logs := worked(t, memory.New(nil), func(context.Context, *stage.Task) (stage.Commit, error) { panic("boom") }).All()
	require.Len(t, logs, 2)
	for _, entry := range logs {
		require.Equal(t, zapcore.ErrorLevel, entry.Level)
		require.Equal(t, "a stage has panicked", entry.Message)
		require.Contains(t, entry.ContextMap()["error"], "boom")
		require.Contains(t, entry.ContextMap()["stack"], "log_test.go")
	}
}

func TestSuccessIsNotLogged(t *testing.T) {
	require.Zero(t, worked(t, memory.New(nil), func(context.Context, *stage.Task) (stage.Commit, error) {
		return nil, nil
	}).Len())
}

// Task.Failure, which is stored, has the stack from the function on that has panicked, within MaxFailure bytes.
func TestTheFailureOfAPanicHasItsStack(t *testing.T) {
	for text, says := range map[string]string{
		"boom":                                  "panic: boom\n\ngithub.com/daimon-go/daimon/stage_test.TestTheFailureOfAPanicHasItsStack.func",
		strings.Repeat("x", stage.MaxFailure+1): "panic: xxx",
	} {
		var ended stage.Task
		x := worksOff(t, engineOf(t, memory.New(nil), 1, processor(func(context.Context) { panic(text) }), func(cfg *stage.Config) {
			cfg.Attempts, cfg.Ended = 1, func(t stage.Task) { ended = t }
		}))
		require.Equal(t, x.Failure, ended.Failure)
		require.LessOrEqual(t, len(x.Failure), stage.MaxFailure)
		require.Equal(t, says, x.Failure[:len(says)])
	}
}

func TestAPanicOfEndedIsLogged(t *testing.T) {
	for says, ended := range map[string]func(stage.Task){
		"Config.Ended has panicked": func(stage.Task) { panic("boom") },
		"":                          func(stage.Task) { runtime.Goexit() },
	} {
		core, logs := observer.New(zapcore.DebugLevel)
		worksOff(t, engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}), func(cfg *stage.Config) {
			cfg.Logger, cfg.Ended = zap.New(core), ended
		}))
		if says == "" {
			require.Empty(t, logs.All())
			continue
		}
		require.Len(t, logs.All(), 1)
		require.Equal(t, says, logs.All()[0].Message)
		require.Contains(t, logs.All()[0].ContextMap()["stack"], "log_test.go")
	}
}

// stubborn is a Store that cannot be entered three times in a row, and then cannot finish three times.
type stubborn struct {
	stage.Store
	asked int
}

func (s *stubborn) refuses() error {
	if s.asked++; s.asked <= 3 || 4 < s.asked && s.asked <= 7 || s.asked == 9 {
		return errors.New("no answer")
	}
	return nil
}

func (s *stubborn) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	if err := s.refuses(); err != nil {
		return stage.Task{}, err
	}
	return s.Store.Enter(ctx, l, at, attempt)
}

func (s *stubborn) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	if err := s.refuses(); err != nil {
		return err
	}
	return s.Store.Finish(ctx, l, p, commit)
}

// The store is asked again after 50 ms, later after more. What it has answered begins that anew.
func TestRepeatedStoreErrorsAreLoggedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		logs := worked(t, &stubborn{Store: memory.New(nil)}, func(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil }).All()
		require.Equal(t, 2*(50+100+200)*time.Millisecond+50*time.Millisecond, time.Since(begun))
		var times []any
		for _, entry := range logs {
			require.Equal(t, zapcore.ErrorLevel, entry.Level)
			require.Equal(t, "the store has failed, and is asked again", entry.Message)
			require.Equal(t, "no answer", entry.ContextMap()["error"])
			times = append(times, entry.ContextMap()["times"])
		}
		require.Equal(t, []any{int64(1), int64(2), int64(1), int64(2), int64(1)}, times)
	})
}
