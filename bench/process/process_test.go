package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/process/measure"
	"github.com/daimon-go/daimon/internal/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunMeasuresEveryRow(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures all that there is")
	left := func() []string {
		all, err := filepath.Glob(filepath.Join(os.TempDir(), "bench-process-*"))
		require.NoError(t, err)
		return all
	}
	before := left()
	var out strings.Builder
	profiles := t.TempDir()
	require.NoError(t, run(t.Context(), &out, Options{Rows: strings.Join(names(), ","), Pairs: 1, Scale: 0.001, Profile: profiles}))
	for _, r := range rows {
		require.Contains(t, out.String(), "\n"+r.name+": ")
		for _, v := range r.views {
			require.Contains(t, out.String(), "\n"+r.name+", "+v.what+"\n")
		}
	}
	for _, wrong := range []string{"NaN", "Inf"} {
		require.NotContains(t, out.String(), wrong)
	}
	require.FileExists(t, filepath.Join(profiles, "hand-off.pprof"))
	require.Subset(t, before, left())
}

func TestRatiosAreOfColumnsOfTheRow(t *testing.T) {
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names()))), len(rows), "two rows of one name")
	has := func(where string, columns []string, all []ratio) {
		for _, x := range all {
			require.Contains(t, columns, x.of, where)
			require.Contains(t, columns, x.to, where)
		}
	}
	for _, r := range rows {
		has(r.name, r.titles(), r.ratios)
		for _, v := range r.views {
			has(r.name+", "+v.what, v.titles(r), v.ratios)
		}
	}
}

// says returns programs that print the given figures.
func says(t *testing.T, figures map[string]string) programs {
	p := programs{}
	for name, f := range figures {
		p[name] = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(p[name], fmt.Appendf(nil, "#!/bin/sh\n%s\n", f), 0o700))
	}
	return p
}

var sample = row{
	name: "sample",
	what: "ns",
	columns: []column{
		{name: "daimon", program: "daimon", laps: 1},
		{name: "goal", goal: 100},
		{name: "actors", program: "actors", laps: 1},
	},
	ratios: []ratio{{"daimon", "goal", 1}, {"daimon", "actors", 0.7}},
	cost:   wall,
	views:  []view{allocations},
}

func TestTables(t *testing.T) {
	p := says(t, map[string]string{
		"daimon": `echo '{"Wall": 120, "Allocs": 0.5}'`,
		"actors": `echo '{"Wall": 160, "Allocs": 2}'`,
	})
	var out strings.Builder
	above, err := Options{Pairs: 2, Scale: 1}.tables(t.Context(), &out, p, sample)
	require.NoError(t, err)
	require.Equal(t, `
sample: ns
pair      daimon     goal   actors  daimon/goal  daimon/actors
1            120      100      160        1.200          0.750
2            120      100      160        1.200          0.750
median       120      100      160        1.200          0.750
min          120      100      160        1.200          0.750
max          120      100      160        1.200          0.750
limit                                     1.000          0.700

sample, allocations, of 1000
pair      daimon   actors
median       500     2000
min          500     2000
max          500     2000
`, out.String())
	require.EqualError(t, above, "the median ratio daimon/goal, 1.200, is above 1.000\nthe median ratio daimon/actors, 0.750, is above 0.700")
}

func TestTheGainOfReactorsIsComparedWithThatOfThreads(t *testing.T) {
	work := rows[slices.Index(names(), "work")]
	all := []pair{{
		"1 thread": {Wall: 200}, "2 threads": {Wall: 100},
		"1 reactor": {Wall: 220}, "2 reactors": {Wall: 132},
	}}
	var out strings.Builder
	above, err := work.views[0].print(&out, work, all)
	require.NoError(t, err)
	require.Contains(t, out.String(), "median       500       600             1.200\n")
	require.ErrorContains(t, above, "reactors/threads, 1.200, is above 1.111")
}

func TestAnErrorHasTheOutputOfTheProgram(t *testing.T) {
	p := says(t, map[string]string{"daimon": `echo broken >&2; exit 3`, "actors": "echo nonsense"})
	_, err := Options{Pairs: 1, Scale: 1}.run(t.Context(), p, sample.columns[0], "sample")
	require.ErrorContains(t, err, "broken")
	require.ErrorContains(t, err, "-row sample")
	_, err = Options{Pairs: 1, Scale: 1}.tables(t.Context(), new(strings.Builder), p, sample)
	require.ErrorContains(t, err, "exit status 3")
	_, err = Options{Pairs: 1, Scale: 1}.run(t.Context(), p, sample.columns[2], "sample")
	require.ErrorContains(t, err, "invalid character")
}

func TestUnknownRowsAreRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), new(strings.Builder), Options{Rows: "spawn,nothing"}), "-rows takes some of hand-off,")
}

func TestAMeasurementCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Options{Scale: 1}.run(ctx, says(t, map[string]string{"daimon": "sleep 60"}), sample.columns[0], "sample")
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheFirstLapWarmsUp(t *testing.T) {
	m := measure.Meter{Laps: 2}
	var laps []bool
	for range 4 {
		laps = append(laps, m.Lap(1))
	}
	require.Equal(t, []bool{true, true, true, false}, laps)
}

func TestDiceHaveAllSides(t *testing.T) {
	seen := map[int]int{}
	d := measure.Dice(1)
	for range 6000 {
		seen[d.Roll(6)]++
	}
	for side := range 6 {
		require.InDelta(t, 1000, seen[side], 300)
	}
	require.Len(t, seen, 6)
}
