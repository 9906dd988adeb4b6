package stage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

func TestPermanentErrorsStayWhatTheyAre(t *testing.T) {
	require.NoError(t, stage.Permanent(nil))
	cause := errors.New("no such page")
	err := stage.Permanent(fmt.Errorf("page 7: %w", cause))
	require.EqualError(t, err, "page 7: no such page")
	require.ErrorIs(t, err, cause)
	require.True(t, errors.Is(err, stage.ErrPermanent))
	require.True(t, errors.Is(fmt.Errorf("again: %w", err), stage.ErrPermanent))
	require.False(t, errors.Is(cause, stage.ErrPermanent))
	require.False(t, errors.Is(nil, stage.ErrPermanent))
}

func TestProcessorsAreFoundByTheirIDs(t *testing.T) {
	ps := stage.Processors{"load": processor(func(context.Context) {}), "nil": nil}
	p, err := ps.Processor("load")
	require.NoError(t, err)
	require.NotNil(t, p)
	for _, id := range []string{"build", "nil", ""} {
		p, err = ps.Processor(id)
		require.EqualError(t, err, fmt.Sprintf("stage: no processor %q", id))
		require.Nil(t, p)
	}
}

func TestRunsAndFinished(t *testing.T) {
	for _, row := range []struct {
		status         stage.Status
		due            bool
		runs, finished bool
	}{
		{stage.Normal, true, true, false},
		{stage.Normal, false, false, true},
		{stage.InProcessing, true, true, false},
		{stage.Resumed, true, true, false},
		{stage.Error, true, true, false}, // it is tried again
		{stage.Error, false, false, false},
		{stage.Suspended, false, false, false},
		{stage.Cancelled, false, false, false},
	} {
		task := &stage.Task{Status: row.status}
		if row.due {
			task.Due = time.Unix(1e9, 0)
		}
		require.Equal(t, row.runs, task.Runs(), "%v", row)
		require.Equal(t, row.finished, task.Finished(), "%v", row)
	}
}

func TestAskAnEngineOnGoroutines(t *testing.T) {
	e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}))
	id, err := e.Enqueue(t.Context(), "task", nil)
	require.NoError(t, err)
	s := act.New(act.Config{})
	suspend := stage.Call(e, func(ctx context.Context) (bool, error) { return e.Suspend(ctx, id) })
	s.Spawn(act.Func(suspend.Act))
	inTime(t, func() { require.NoError(t, s.Run()) })
	require.True(t, suspend.Value)
	require.NoError(t, s.Close())
	task, err := e.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, stage.Suspended, task.Status)
}
