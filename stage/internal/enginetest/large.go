package enginetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/store"
)

// Large returns how many milliseconds the slowest call takes of a store with very many tasks: its counts, a purge, and
// the pages of LargePages, of all tasks, and of tasks that run or have ended.
func Large(t *testing.T, s store.Store, kinds []string) (slowest float64) {
	return max(
		timed(t, func() error { _, err := s.Counts(t.Context()); return err }),
		timed(t, func() error {
			_, err := s.Purge(t.Context(), store.Normal, 0, 1000)
			return err
		}),
		LargePages(t, s, kinds, store.Selection{}),
		LargePages(t, s, kinds, store.Selection{Running: true}),
		LargePages(t, s, kinds, store.Selection{Ended: true}),
	)
}

// LargePages returns how many milliseconds the slowest page takes of the newest 100 tasks of what sel selects: of all,
// and of each of the kinds and statuses.
func LargePages(t *testing.T, s store.Store, kinds []string, sel store.Selection) (slowest float64) {
	sel.Newest, sel.Limit = true, 100
	for _, sel.Kind = range append([]string{""}, kinds...) {
		for _, sel.Status = range []store.Status{
			"", store.Normal, store.InProcessing, store.Suspended, store.Resumed, store.Failed, store.Canceled,
		} {
			slowest = max(slowest, timed(t, func() error { _, err := s.List(t.Context(), sel); return err }))
		}
	}
	return slowest
}

// timed returns how many milliseconds a call takes.
func timed(t *testing.T, do func() error) float64 {
	begun := time.Now()
	require.NoError(t, do())
	return time.Since(begun).Seconds() * 1000
}
