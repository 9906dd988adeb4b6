package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// A call waits for other writes of this process, and then for one of another process: both together take no longer than
// Busy. The clock is that of synctest.
func TestBothWaitsTogetherTakeBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(path, sqlite.Config{Busy: 10 * time.Second})
		require.NoError(t, err)
		other, err := sqlite.Open(path, sqlite.Config{})
		require.NoError(t, err)
		tx, err := other.Writer().Begin()
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				begun := time.Now()
				_, err := s.Enqueue(t.Context(), stage.NewTask{Kind: "a", Stage: "CREATED"})
				if err == nil || time.Since(begun) > 11*time.Second {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
			time.Sleep(5 * time.Second)
		}
		all.Wait()
		require.NoError(t, tx.Rollback())
		require.NoError(t, other.Close())
		require.NoError(t, s.Close())
	})
}
