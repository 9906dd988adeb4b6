package stage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// Each heartbeat sends what was noted last, unless the answer of an earlier one has said that it is stored.
func TestProgressIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, arg any, do func() error) error {
			err := do()
			if call == "Heartbeat" {
				p := arg.([]stage.Renewal)[0].Progress
				if sent = append(sent, p.Stage+string(p.Data)); len(sent) == 2 {
					return errLost
				}
			}
			return err
		}}
		ctx, cancel := context.WithCancel(t.Context())
		e := engineOf(t, s, 1, stage.ProcessorFunc(func(_ context.Context, task *stage.Task) (stage.Commit, error) {
			time.Sleep(1500 * time.Millisecond)
			for _, data := range []string{"1", "2"} {
				task.SetProgress([]byte(data))
			}
			time.Sleep(2 * time.Second)
			task.SetProgress(nil)
			time.Sleep(2 * time.Second)
			return nil, nil
		}), func(cfg *stage.Config) { cfg.OnEnd = func(stage.Task) { cancel() } })
		enqueued(t, e, "")
		require.NoError(t, e.Run(ctx))
		require.Equal(t, []string{"", "0+2", "0+2", "0+", ""}, sent)
	})
}

// What is noted wrongly is a failure of the stage, or changes nothing.
func TestProgressOutOfPlace(t *testing.T) {
	var behind *stage.Task
	ended := make(chan stage.Task, 1)
	e := engineOf(t, memory.New(nil), 1, stage.ProcessorFunc(func(_ context.Context, task *stage.Task) (stage.Commit, error) {
		switch string(task.Data) {
		case "too much":
			task.SetProgress(make([]byte, stage.MaxProgress+1))
		case "late":
			behind = task
			task.SetProgress([]byte("in time"))
			return nil, stage.Permanent(errors.New("no luck"))
		}
		return nil, nil
	}), func(cfg *stage.Config) { cfg.Attempts, cfg.OnEnd = 1, func(t stage.Task) { ended <- t } })
	end := func(data string) stage.Task {
		fires(t, e, enqueued(t, e, data))
		return <-ended
	}
	require.Contains(t, end("too much").Failure, "stage: SetProgress with 4097 bytes; MaxProgress is 4096")
	task := end("late")
	require.Equal(t, "in time", string(task.Progress))
	behind.SetProgress([]byte("late"))
	task, err := e.Get(t.Context(), task.ID)
	require.NoError(t, err)
	require.Equal(t, "in time", string(task.Progress))
	require.Equal(t, "0+", task.ProgressStage)
	require.PanicsWithValue(t, "stage: SetProgress is for the Task that a processor was given", func() { task.SetProgress(nil) })
}
