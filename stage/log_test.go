package stage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// Task.Failure, which is stored, has the stack from the function on that has panicked, within MaxFailure bytes.
func TestTheFailureOfAPanicHasItsStack(t *testing.T) {
	for text, says := range map[string]string{
		"boom": "panic: boom\n\ngithub.com/daimon-go/daimon/stage_test.TestTheFailureOfAPanicHasItsStack.func",
		strings.Repeat("x", transition.MaxFailure+1): "panic: xxx",
	} {
		var ended store.Task
		x := worksOff(t, engineOf(t, memory.New(nil), 1, processor(func(context.Context) { panic(text) }), func(cfg *stage.Config) {
			cfg.OnEnd = func(t store.Task) { ended = t }
		}, once))
		require.Equal(t, x.Failure, ended.Failure)
		require.LessOrEqual(t, len(x.Failure), transition.MaxFailure)
		require.Equal(t, says, x.Failure[:len(says)])
	}
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
