package report

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
)

// Files were added twice if the answer was lost the first time.
func TestFilesThatAreAddedAgainAreThereOnce(t *testing.T) {
	r, err := Create(t.Context(), filepath.Join(t.TempDir(), "report.db"))
	require.NoError(t, err)
	defer r.Close()
	var ids [3][]stage.ID
	for i, name := range []string{"one", "one", "two"} {
		ids[i], err = r.add(t.Context(), name, []string{"a", "b", "a"})
		require.NoError(t, err)
	}
	require.Equal(t, ids[0], ids[1])
	tasks, err := r.Store.List(t.Context(), stage.Selection{})
	require.NoError(t, err)
	require.Len(t, tasks, 6)
}
