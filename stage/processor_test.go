package stage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
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

// notYet is a value that this release does not understand.
type notYet struct{}

func (*notYet) UnmarshalJSON([]byte) error { return stage.Snooze(time.Hour) }

// A task whose Data is not a value of the type fails for good at its first attempt, unless the type puts it off.
func TestDataThatIsNoValue(t *testing.T) {
	task := worksOffTyped[int](t)
	require.True(t, task.Ended())
	require.Contains(t, task.Failure, "stage: data of task 1: json: cannot unmarshal string")
	task = worksOffTyped[notYet](t)
	require.Equal(t, "0 NORMAL", state(task))
	require.True(t, task.Runs())
}

func worksOffTyped[T any](t *testing.T) store.Task {
	t.Helper()
	e := engineOf(t, memory.New(nil), 1, stage.Typed[T]{}.Processor(func(context.Context, *store.Task, T) (store.Commit, error) {
		t.Error("called without a value")
		return nil, nil
	}))
	return fires(t, e, enqueued(t, e, `"one"`))
}

func TestAValueThatCannotBeData(t *testing.T) {
	k := stage.Typed[chan int]{Kind: "channel"}
	_, err := k.Enqueue(t.Context(), engineOf(t, memory.New(nil), 1, nothing), nil)
	require.ErrorContains(t, err, "stage: data of a channel: json: unsupported type")
	require.ErrorContains(t, k.SetData(nil, nil), "unsupported type")
}
