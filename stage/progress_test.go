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
	"github.com/daimon-go/daimon/stage/store"
)

// Each heartbeat sends what was noted last, unless the answer of an earlier one has said that it is stored.
func TestProgressIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, arg any, do func() error) error {
			err := do()
			if call == "Heartbeat" {
				p := arg.([]store.Renewal)[0].Progress
				if sent = append(sent, p.Stage+string(p.Data)); len(sent) == 2 {
					return errLost
				}
			}
			return err
		}}
		ctx, cancel := context.WithCancel(t.Context())
		e := engineOf(t, s, 1, func(ctx context.Context, _ *store.Task) (store.Commit, error) {
			time.Sleep(1500 * time.Millisecond)
			for _, data := range []string{"1", "2"} {
				stage.SetProgress(ctx, []byte(data))
			}
			time.Sleep(2 * time.Second)
			stage.SetProgress(ctx, nil)
			time.Sleep(2 * time.Second)
			return nil, nil
		}, func(cfg *stage.Config) { cfg.OnEnd = func(store.Task) { cancel() } })
		enqueued(t, e, "")
		require.NoError(t, e.Run(ctx))
		require.Equal(t, []string{"", "0+2", "0+2", "0+", ""}, sent)
	})
}

// What is noted wrongly is a failure of the stage, or changes nothing.
func TestProgressOutOfPlace(t *testing.T) {
	var behind context.Context
	ended := make(chan store.Task, 1)
	e := engineOf(t, memory.New(nil), 1, func(ctx context.Context, task *store.Task) (store.Commit, error) {
		switch string(task.Data) {
		case "too much":
			stage.SetProgress(ctx, make([]byte, 4097))
		case "late":
			behind = ctx
			stage.SetProgress(ctx, []byte("in time"))
			return nil, stage.Permanent(errors.New("no luck"))
		}
		return nil, nil
	}, func(cfg *stage.Config) { cfg.OnEnd = func(t store.Task) { ended <- t } }, once)
	end := func(data string) store.Task {
		fires(t, e, enqueued(t, e, data))
		return <-ended
	}
	require.Contains(t, end("too much").Failure, "stage: SetProgress with 4097 bytes; 4096 is the most")
	task := end("late")
	require.Equal(t, "in time", string(task.Progress))
	stage.SetProgress(behind, []byte("late"))
	task, err := e.Store().Get(t.Context(), task.ID)
	require.NoError(t, err)
	require.Equal(t, "in time", string(task.Progress))
	require.Equal(t, "0+", task.ProgressStage)
	require.PanicsWithValue(t, "stage: SetProgress is for the context that a processor was given", func() { stage.SetProgress(t.Context(), nil) })
}
