package stage_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

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

// A store that does not answer for two minutes and a half makes three lines, whatever fails, and one when it answers again.
func TestAnOutageIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		var mu sync.Mutex
		var end time.Time
		asked := int64(0)
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
			mu.Lock()
			if end.IsZero() && call == "Enter" {
				end = time.Now().Add(150 * time.Second)
			}
			refused := time.Now().Before(end)
			if refused {
				asked++
			}
			mu.Unlock()
			if refused {
				return errors.New("no answer")
			}
			return do()
		}}
		e := engineOf(t, s, 2, nothing, func(cfg *stage.Config) {
			cfg.Logger, cfg.Lease, cfg.Heartbeat = zap.New(core), 10*time.Minute, time.Second
		})
		enqueued(t, e, "")
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
		require.Equal(t, asked, failures)
	})
}

// The store is asked again after 50 ms, later after more. What it has answered begins that anew.
func TestAStoreThatFailsIsAskedAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
			if call == "Enter" || call == "Finish" {
				if asked++; asked <= 3 || 4 < asked && asked <= 7 || asked == 9 {
					return errors.New("no answer")
				}
			}
			return do()
		}}
		begun := time.Now()
		worksOff(t, engineOf(t, s, 2, nothing))
		require.Equal(t, 2*(50+100+200)*time.Millisecond+50*time.Millisecond, time.Since(begun))
	})
}
