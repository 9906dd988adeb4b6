package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

func TestPace(t *testing.T) {
	t.Parallel()
	outside(t)
	t.Run("the tasks go one after the other", func(t *testing.T) {
		start := time.Now()
		p := run(t, "pace", nil, "-tasks", "3", "-each", "3", "-rate", "25")
		require.Zero(t, p.Exit(t))
		require.GreaterOrEqual(t, time.Since(start), 8*40*time.Millisecond)
		require.Equal(t, []string{
			"task 1, time 1", "task 2, time 1", "task 3, time 1",
			"task 1, time 2", "task 2, time 2", "task 3, time 2",
			"task 1, time 3", "task 2, time 3", "task 3, time 3",
		}, p.Lines())
	})

	t.Run("what cannot be written fails the task that wrote it", func(t *testing.T) {
		out, err := os.Open(os.DevNull) // for reading alone
		require.NoError(t, err)
		defer out.Close()
		cmd := example("pace").Command(t, "-tasks", "2", "-rate", "1000")
		cmd.Stdout = out
		p := exectest.Start(t, cmd)
		require.Equal(t, 1, p.Exit(t))
		require.Equal(t, 2, strings.Count(p.Said(), "bad file descriptor"), p.Said())
	})
}

func TestPaceInvalidArguments(t *testing.T) {
	outside(t)
	for _, row := range []struct {
		line, says string
	}{
		{"-rate 0", "-rate must be from 1e-09 to 1e+09 times a second: 0"},
		{"-rate -3", "-rate must be from 1e-09 to 1e+09 times a second: -3"},
		{"-rate NaN", "-rate must be from 1e-09 to 1e+09 times a second: NaN"},
		{"-rate Inf", "-rate must be from 1e-09 to 1e+09 times a second: +Inf"},
		{"-rate 1e-300", "-rate must be from 1e-09 to 1e+09 times a second: 1e-300"},
		{"-rate often", `invalid value "often" for flag -rate: parse error`},
		{"-tasks -1", "-tasks must not be negative: -1"},
		{"-each -1", "-each must not be negative: -1"},
		{"extra -rate 3", `unexpected argument "extra"`},
	} {
		t.Run(row.line, func(t *testing.T) {
			p := run(t, "pace", nil, strings.Fields(row.line)...)
			require.Equal(t, 2, p.Exit(t))
			require.Equal(t, "pace: "+row.says+"\n", p.Said())
			require.Empty(t, p.Out())
		})
	}
}
