package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
)

// Large logs how long a store with very many tasks takes for its counts, a purge, and for pages of 100 tasks: of all, and of
// each of the kinds and statuses, also of those that run, and that have ended. The median of a few must be below 100 ms.
func Large(t *testing.T, s stage.Store, kinds []string) {
	timed(t, "counts", func() (int, error) {
		counts, err := s.Counts(t.Context())
		return len(counts), err
	})
	timed(t, "purge of 1000", func() (int, error) {
		return s.Purge(t.Context(), stage.Purge{Status: stage.Normal, Limit: 1000})
	})
	LargePages(t, s, kinds, stage.Selection{})
	LargePages(t, s, kinds, stage.Selection{Running: true})
	LargePages(t, s, kinds, stage.Selection{Ended: true})
}

// LargePages does what Large does, for pages of what sel selects: of all, and of each of the kinds and statuses.
func LargePages(t *testing.T, s stage.Store, kinds []string, sel stage.Selection) {
	for _, sel.Kind = range append([]string{""}, kinds...) {
		for _, sel.Status = range []stage.Status{
			"", stage.Normal, stage.InProcessing, stage.Suspended, stage.Resumed, stage.Error, stage.Cancelled,
		} {
			newest(t, s, sel)
		}
	}
}

// newest logs how long pages of the newest 100 take.
func newest(t *testing.T, s stage.Store, sel stage.Selection) {
	name := fmt.Sprintf("the newest of kind %q, status %q, running %v, ended %v", sel.Kind, sel.Status, sel.Running, sel.Ended)
	sel.Newest, sel.Limit = true, 100
	timed(t, name, func() (int, error) {
		page, err := s.List(t.Context(), sel)
		if len(page) == sel.Limit { // the next time the next page
			sel.Before = page[len(page)-1].ID
		}
		return len(page), err
	})
}

// timed logs the median time of a call, which must be below 100 ms.
func timed(t *testing.T, name string, do func() (rows int, err error)) {
	var took []time.Duration
	var rows int
	for range 5 {
		begun := time.Now()
		n, err := do()
		took = append(took, time.Since(begun))
		require.NoError(t, err, name)
		rows = max(rows, n)
	}
	slices.Sort(took)
	median := took[len(took)/2]
	t.Logf("%9.2f ms, at most %9.2f: %s, %d rows", median.Seconds()*1000, took[len(took)-1].Seconds()*1000, name, rows)
	require.Less(t, median, 100*time.Millisecond, name)
}
