package stage_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// A task whose Data is not a value of the type fails for good at its first attempt, unless Unmarshal puts it off.
func TestDataThatIsNoValue(t *testing.T) {
	for _, k := range []stage.Typed[int]{
		{Kind: "task"}, {Kind: "task", Unmarshal: func([]byte, *int) error { return stage.Snooze(time.Hour) }},
	} {
		e := engineOf(t, memory.New(nil), 1, k.Processor(func(context.Context, *store.Task, int) (store.Commit, error) {
			t.Error("called without a value")
			return nil, nil
		}))
		task := fires(t, e, enqueued(t, e, `"one"`))
		if k.Unmarshal == nil {
			require.True(t, task.Ended())
			require.Contains(t, task.Failure, "stage: data of task 1: json: cannot unmarshal string")
		} else {
			require.Equal(t, "0 NORMAL true", state(task)+" "+strconv.FormatBool(task.Runs()))
		}
	}
}

func TestAValueThatCannotBeData(t *testing.T) {
	k := stage.Typed[chan int]{Kind: "channel"}
	e := engineOf(t, memory.New(nil), 1, nothing)
	_, err := k.Enqueue(t.Context(), e, nil)
	require.ErrorContains(t, err, "stage: data of a channel: json: unsupported type")
	_, err = k.NewTask(e, nil)
	require.ErrorContains(t, err, "stage: data of a channel: json: unsupported type")
	require.ErrorContains(t, k.SetData(nil, nil), "unsupported type")
}

func TestDataInAnotherForm(t *testing.T) {
	k := stage.Typed[int]{
		Kind:    "number",
		Marshal: func(n int) ([]byte, error) { return strconv.AppendInt(nil, int64(n), 16), nil },
		Unmarshal: func(data []byte, n *int) error {
			v, err := strconv.ParseInt(string(data), 16, 0)
			*n = int(v)
			return err
		},
	}
	data, err := k.Data(255)
	require.NoError(t, err)
	require.Equal(t, "ff", string(data))
	n, err := k.Value(&store.Task{Data: data})
	require.NoError(t, err)
	require.Equal(t, 255, n)
}
