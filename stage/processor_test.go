package stage_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

func TestPermanentErrorsStayWhatTheyAre(t *testing.T) {
	require.NoError(t, stage.Permanent(nil))
	cause := errors.New("no such page")
	err := stage.Permanent(fmt.Errorf("page 7: %w", cause))
	require.EqualError(t, err, "page 7: no such page")
	require.ErrorIs(t, err, cause)
	require.True(t, errors.Is(err, store.ErrPermanent))
	require.True(t, errors.Is(fmt.Errorf("again: %w", err), store.ErrPermanent))
	require.False(t, errors.Is(cause, store.ErrPermanent))
	require.False(t, errors.Is(nil, store.ErrPermanent))
}

func TestRunsFinishedAndEnded(t *testing.T) {
	for _, row := range []struct {
		status                store.Status
		due                   bool
		runs, finished, ended bool
	}{
		{store.Normal, true, true, false, false},
		{store.Normal, false, false, true, true},
		{store.InProcessing, true, true, false, false},
		{store.Resumed, true, true, false, false},
		{store.Failed, true, true, false, false}, // it is tried again
		{store.Failed, false, false, false, true},
		{store.Suspended, false, false, false, false},
		{store.Canceled, false, false, false, true},
	} {
		task := &store.Task{Status: row.status}
		if row.due {
			task.Due = time.Unix(1e9, 0)
		}
		require.Equal(t, []bool{row.runs, row.finished, row.ended}, []bool{task.Runs(), task.Finished(), task.Ended()}, "%v", row)
	}
}
