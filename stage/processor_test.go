package stage_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
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

func TestRunsFinishedAndEnded(t *testing.T) {
	for _, row := range []struct {
		status                stage.Status
		due                   bool
		runs, finished, ended bool
	}{
		{stage.Normal, true, true, false, false},
		{stage.Normal, false, false, true, true},
		{stage.InProcessing, true, true, false, false},
		{stage.Resumed, true, true, false, false},
		{stage.Error, true, true, false, false}, // it is tried again
		{stage.Error, false, false, false, true},
		{stage.Suspended, false, false, false, false},
		{stage.Cancelled, false, false, false, true},
	} {
		task := &stage.Task{Status: row.status}
		if row.due {
			task.Due = time.Unix(1e9, 0)
		}
		require.Equal(t, []bool{row.runs, row.finished, row.ended}, []bool{task.Runs(), task.Finished(), task.Ended()}, "%v", row)
	}
}
