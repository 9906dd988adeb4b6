package stage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

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
