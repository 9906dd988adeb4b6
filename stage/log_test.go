package stage_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
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
	ofTasks := func(e observer.LoggedEntry) bool { return e.Message != "the store answers again" }
	for _, entry := range logs.Filter(ofTasks).All() {
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
			cfg.Attempts, cfg.OnEnd = 1, func(t stage.Task) { ended = t }
		}))
		require.Equal(t, x.Failure, ended.Failure)
		require.LessOrEqual(t, len(x.Failure), stage.MaxFailure)
		require.Equal(t, says, x.Failure[:len(says)])
	}
}

func TestAPanicOfEndedIsLogged(t *testing.T) {
	for says, ended := range map[string]func(stage.Task){
		"Config.OnEnd has panicked": func(stage.Task) { panic("boom") },
		"":                          func(stage.Task) { runtime.Goexit() },
	} {
		core, logs := observer.New(zapcore.DebugLevel)
		worksOff(t, engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}), func(cfg *stage.Config) {
			cfg.Logger, cfg.OnEnd = zap.New(core), ended
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

// away is a Store that answers nothing for 150 s after its first claim.
type away struct {
	stage.Store
	until atomic.Pointer[time.Time]
	asked atomic.Int64
}

func (s *away) refuses() error {
	if until := s.until.Load(); until != nil && time.Now().Before(*until) {
		s.asked.Add(1)
		return errors.New("no answer")
	}
	return nil
}

func (s *away) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	if err := s.refuses(); err != nil {
		return nil, err
	}
	tasks, err := s.Store.Claim(ctx, c)
	if len(tasks) > 0 && s.until.Load() == nil {
		s.until.Store(new(time.Now().Add(150 * time.Second)))
	}
	return tasks, err
}

func (s *away) Heartbeat(ctx context.Context, renewals []stage.Renewal, d time.Duration) ([]stage.Beat, error) {
	if err := s.refuses(); err != nil {
		return nil, err
	}
	return s.Store.Heartbeat(ctx, renewals, d)
}

func (s *away) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	if err := s.refuses(); err != nil {
		return stage.Task{}, err
	}
	return s.Store.Enter(ctx, l, at, attempt)
}

// Watch is refused, too.
func (s *away) Watch(ctx context.Context, _ func(stage.Hint)) error {
	for ctx.Err() == nil {
		if err := s.refuses(); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	return ctx.Err()
}

// A store that does not answer for two minutes and a half makes three lines, and one when it answers again.
func TestAnOutageIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		s := &away{Store: memory.New(nil)}
		e := engineOf(t, s, 2, processor(func(context.Context) {}), func(cfg *stage.Config) {
			cfg.Logger, cfg.Workers, cfg.Lease, cfg.Heartbeat = zap.New(core), 8, 10*time.Minute, time.Second
		})
		for range 20 {
			_, err := e.Enqueue(t.Context(), "task", nil)
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 160*time.Second)
		defer cancel()
		require.NoError(t, e.Run(ctx))
		var said []string
		failures := int64(0)
		for _, entry := range logs.All() {
			said = append(said, entry.Message)
			failures += entry.ContextMap()["failures"].(int64)
		}
		const silent = "the store does not answer, and is asked again"
		require.Equal(t, []string{silent, silent, silent, "the store answers again"}, said)
		require.Greater(t, s.asked.Load(), int64(8*100))
		require.Equal(t, s.asked.Load(), failures)
	})
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
func TestAStoreThatFailsIsAskedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		worked(t, &stubborn{Store: memory.New(nil)}, func(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil })
		require.Equal(t, 2*(50+100+200)*time.Millisecond+50*time.Millisecond, time.Since(begun))
	})
}
