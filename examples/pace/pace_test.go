package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/internal/smoke"
)

func TestMain(m *testing.M) { smoke.Main(m, main) }

func TestPace(t *testing.T) {
	t.Run("the tasks go one after the other", func(t *testing.T) {
		start := time.Now()
		p := smoke.Start(t, nil, "-tasks", "3", "-each", "3", "-rate", "25")
		require.Zero(t, p.Exit(t))
		require.GreaterOrEqual(t, time.Since(start), 8*40*time.Millisecond)
		require.Equal(t, []string{
			"task 1, time 1", "task 2, time 1", "task 3, time 1",
			"task 1, time 2", "task 2, time 2", "task 3, time 2",
			"task 1, time 3", "task 2, time 3", "task 3, time 3",
		}, p.Lines())
	})

	t.Run("no rate", func(t *testing.T) {
		p := smoke.Start(t, nil, "-rate", "0")
		require.Equal(t, 1, p.Exit(t))
		require.Contains(t, p.Said(), "pace: the rate must be above 0")
	})
}
