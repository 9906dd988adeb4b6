package sqlite_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// Tasks that are enqueued in a transaction are there with its rows, and only then.
func TestEnqueueIn(t *testing.T) {
	s, _ := withReports(t, sqlite.Config{})
	regretted := errors.New("regretted")
	for _, want := range []error{regretted, nil} {
		var ids []stage.ID
		err := s.Update(t.Context(), func(tx *sql.Tx) (err error) {
			ids, err = s.EnqueueIn(tx,
				stage.NewTask{Kind: "job", Stage: "NEW", Data: []byte("data")}, stage.NewTask{Kind: "other", Stage: "OLD"})
			require.NoError(t, err)
			require.Len(t, ids, 2)
			return errors.Join(insert(tx, ids[0]), want)
		})
		require.ErrorIs(t, err, want)
		for i, has := range []stage.Task{{Kind: "job", Stage: "NEW", Data: []byte("data")}, {Kind: "other", Stage: "OLD"}} {
			x, err := s.Get(t.Context(), ids[i])
			if want != nil {
				require.ErrorIs(t, err, stage.ErrNotFound)
				continue
			}
			require.NoError(t, err)
			require.True(t, x.Runs())
			require.Equal(t, has, stage.Task{Kind: x.Kind, Stage: x.Stage, Data: x.Data})
		}
		require.Equal(t, want == nil, count(t, s.DB(), "report") == 1)
	}
}
