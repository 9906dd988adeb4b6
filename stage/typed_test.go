package stage_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

func TestDataThatIsNoValue(t *testing.T) {
	k := stage.Typed[int]{Kind: "number"}
	p := k.Processor(func(context.Context, *stage.Task, int) (stage.Commit, error) {
		t.Error("called without a value")
		return nil, nil
	})
	_, err := p.Process(t.Context(), &stage.Task{ID: 7, Kind: "number", Data: []byte(`"one"`)})
	require.ErrorContains(t, err, "stage: data of number 7: json: cannot unmarshal string")
	require.NotErrorIs(t, err, stage.ErrPermanent)
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
	n, err := k.Value(&stage.Task{Data: data})
	require.NoError(t, err)
	require.Equal(t, 255, n)
}
