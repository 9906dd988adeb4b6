package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/queue/measure"
	"github.com/daimon-go/daimon/internal/tier"
)

// shared is the place that most tests measure in, made by the first of them.
var shared struct {
	once  sync.Once
	place *place
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.place != nil {
		if err := shared.place.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// measured is run in the shared place.
func measured(t *testing.T, out io.Writer, o Options) error {
	t.Helper()
	tier.Need(t, tier.Full, "it runs PostgreSQL")
	shared.once.Do(func() { shared.place, shared.err = prepare() })
	require.NoError(t, shared.err)
	chosen, err := o.chosen()
	require.NoError(t, err)
	return shared.place.measure(t.Context(), out, o, chosen)
}

// small is a measurement that takes little time.
func small(rows string) Options {
	return Options{Rows: rows, Queues: strings.Join(queues, ","), Pairs: 1, Scale: 0.02, Workers: 10, Conns: 10, Rate: 200,
		Feed: 500, Last: time.Second, Every: 500 * time.Millisecond}
}

func TestEveryRowIsMeasured(t *testing.T) {
	tier.Need(t, tier.Long, "it measures all that there is")
	var out strings.Builder
	o := small(strings.Join(names(), ","))
	o.Profile = t.TempDir()
	require.NoError(t, measured(t, &out, o))
	for _, r := range rows {
		require.Contains(t, out.String(), "\n"+r.name+": "+r.what+"\n")
		for _, v := range r.views {
			require.Contains(t, out.String(), "\n"+r.name+", "+v.what+"\npair      daimon    river  control  daimon/river  control/river\n")
		}
		if r.views == nil {
			require.Contains(t, out.String(), "\n"+r.name+", daimon\n")
			require.Contains(t, out.String(), "\n"+r.name+", river\n")
		}
		require.FileExists(t, filepath.Join(o.Profile, r.name+"-daimon.pprof"))
	}
	last := regexp.MustCompile(`(?m)^ +\d+(\.\d)?s `).FindAllString(out.String(), -1) // those before are of less than a second
	require.Len(t, last, 4, "the last samples of the two long rows")
	for _, wrong := range []string{"NaN", "Inf"} {
		require.NotContains(t, out.String(), wrong)
	}
}

func TestWhatIsAboveItsLimitIsAnErrorAfterAllRows(t *testing.T) {
	tier.Need(t, tier.Long, "it measures once more")
	views := rows[0].views
	defer func() { rows[0].views = views }()
	rows[0].views = []view{{"ratio", 0.5, func(measure.Figures) float64 { return 1 }}}
	require.NoError(t, measured(t, io.Discard, small("drain")))
	o := small("drain,bulk")
	o.Limits = true
	var out strings.Builder
	require.ErrorContains(t, measured(t, &out, o), "daimon/river, 1.000, is above 0.500")
	require.Contains(t, out.String(), "bulk: ")
}

func TestNothingIsLeftBehind(t *testing.T) {
	tier.Need(t, tier.Long, "it runs a PostgreSQL of its own")
	dir, err := os.MkdirTemp("", "") // not that of t, which PostgreSQL's user cannot enter
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := small("heartbeats")
	o.Last = time.Hour
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, io.Discard, o) }()
	require.Eventually(t, func() bool { return works(t, dir) }, time.Minute, 10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// works reports whether a worker below dir runs.
func works(t *testing.T, dir string) bool {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	return slices.ContainsFunc(all, func(path string) bool {
		line, _ := os.ReadFile(path) // none for what has ended
		return strings.HasPrefix(string(line), dir+"/") && strings.Contains(string(line), "/worker\x00-row\x00")
	})
}

func TestAnErrorHasTheOutputOfTheWorker(t *testing.T) {
	o := small("drain")
	o.Profile = filepath.Join(t.TempDir(), "missing")
	err := measured(t, io.Discard, o)
	require.ErrorContains(t, err, "-row drain -queue daimon")
	require.ErrorContains(t, err, "no such file or directory")
}

func TestUnknownRowsAndQueuesAreRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, small("drain,nothing")), "-rows takes some of drain,")
	o := small("drain")
	o.Queues = "river,stream"
	require.ErrorContains(t, run(t.Context(), io.Discard, o), "-queues takes some of daimon,")
}
