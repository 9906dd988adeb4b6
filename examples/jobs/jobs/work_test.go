package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
)

// An error that says how long the attempt has taken is still what it was.
func TestTimedErrors(t *testing.T) {
	fails := func(context.Context, *stage.Task) (stage.Commit, error) {
		return nil, stage.Permanent(errors.New("no paper"))
	}
	_, err := timed(stage.ProcessorFunc(fails)).Process(t.Context(), &stage.Task{})
	require.ErrorIs(t, err, stage.ErrPermanent)
	require.Regexp(t, `^no paper \(after .*s\)$`, err)
	does := func(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil }
	_, err = timed(stage.ProcessorFunc(does)).Process(t.Context(), &stage.Task{})
	require.NoError(t, err)
}
