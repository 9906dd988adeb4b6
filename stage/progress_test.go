package stage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

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
		e := engineFor(t, s, func(_ context.Context, task *stage.Task) (stage.Commit, error) {
			time.Sleep(1500 * time.Millisecond)
			for _, data := range []string{"1", "2"} {
				task.SetProgress([]byte(data))
			}
			time.Sleep(2 * time.Second)
			task.SetProgress(nil)
			time.Sleep(2 * time.Second)
			return nil, nil
		}, func(stage.Task) { cancel() })
		_, err := e.Enqueue(ctx, "thing", nil)
		require.NoError(t, err)
		require.NoError(t, e.Run(ctx))
		require.Equal(t, []string{"", "a-b2", "a-b2", "a-b", ""}, sent)
	})
}

// What is noted wrongly is a failure of the stage, or changes nothing.
func TestProgressOutOfPlace(t *testing.T) {
	var behind *stage.Task
	s, ended := memory.New(nil), make(chan stage.Task, 1)
	e := engineFor(t, s, func(_ context.Context, task *stage.Task) (stage.Commit, error) {
		switch string(task.Data) {
		case "too much":
			task.SetProgress(make([]byte, stage.MaxProgress+1))
		case "late":
			behind = task
			task.SetProgress([]byte("in time"))
			return nil, stage.Permanent(errors.New("no luck"))
		}
		return nil, nil
	}, func(t stage.Task) { ended <- t })
	end := func(data string) stage.Task {
		_, err := e.Enqueue(t.Context(), "thing", []byte(data))
		require.NoError(t, err)
		_, err = e.Fire(t.Context())
		require.NoError(t, err)
		require.NoError(t, e.Wait(t.Context()))
		return <-ended
	}
	require.Contains(t, end("too much").Failure, "stage: SetProgress with 4097 bytes; MaxProgress is 4096")
	task := end("late")
	require.Equal(t, "in time", string(task.Progress))
	behind.SetProgress([]byte("late"))
	task, err := e.Get(t.Context(), task.ID)
	require.NoError(t, err)
	require.Equal(t, "in time", string(task.Progress))
	require.Equal(t, "a-b", task.ProgressStage)
	require.PanicsWithValue(t, "stage: SetProgress is for the Task that a processor was given", func() { task.SetProgress(nil) })
}

// engineFor returns one whose kind has one stage, a-b, with one attempt.
func engineFor(t *testing.T, s stage.Store, do stage.ProcessorFunc, ended func(stage.Task)) *stage.Engine {
	e, err := stage.New(stage.Config{
		Store:    s,
		Kinds:    map[string]stage.Kind{"thing": {Chain: stage.Begin("A").Then("a-b", "do", "B"), Attempts: 1}},
		Provider: stage.Processors{"do": do},
		Logger:   zap.NewNop(),
		OnEnd:    ended,
	})
	require.NoError(t, err)
	return e
}
