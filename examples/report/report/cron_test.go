package report_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // for a machine that has no zones

	"github.com/netresearch/go-cron" // a fork of robfig/cron, which has had no release since 2020; it requires no others
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// A periodic task whose ticks are those of a cron expression, in a time zone. The data of a task is what its processor needs to
// know of the tick.
func Example_cron() {
	weekdays, err := cron.ParseStandard("CRON_TZ=Europe/Vienna 30 6 * * MON-FRI")
	if err != nil {
		fmt.Println(err)
		return
	}
	reports := stage.Typed[time.Time]{Kind: "report"}
	write := func(_ context.Context, _ *stage.Task, tick time.Time) (stage.Commit, error) {
		fmt.Println("the report of", tick.Format(time.DateOnly))
		return nil, nil
	}
	_, err = stage.New(stage.Config{
		Store:    memory.New(nil),
		Kinds:    map[string]stage.Kind{"report": {Chain: stage.Begin("NEW").Then("WRITING", "write", "WRITTEN")}},
		Provider: stage.Processors{"write": reports.Processor(write)},
		Periodic: map[string]stage.Periodic{
			"the daily report": {Kind: "report", Schedule: weekdays, Data: reports.Data, Missed: stage.MissedEach, Most: 5},
		},
	})
	fmt.Println(err)

	friday := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(weekdays.Next(friday).UTC())
	// Output:
	// <nil>
	// 2026-05-04 04:30:00 +0000 UTC
}

// Ticks of a cron expression are run one after the other, by an engine over a file.
func TestTicksOfCron(t *testing.T) {
	t.Parallel()
	parser := cron.MustNewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	each, err := parser.Parse("* * * * * *")
	require.NoError(t, err)
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "tasks.db"), sqlite.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	seconds, seen := stage.Typed[time.Time]{Kind: "second"}, make(chan time.Time, 1000)
	engine, err := stage.New(stage.Config{
		Store: store,
		Kinds: map[string]stage.Kind{"second": {Chain: stage.Begin("NEW").Then("RUNNING", "run", "DONE")}},
		Provider: stage.Processors{"run": seconds.Processor(func(_ context.Context, _ *stage.Task, tick time.Time) (stage.Commit, error) {
			seen <- tick
			return nil, nil
		})},
		Periodic: map[string]stage.Periodic{"each second": {Kind: "second", Schedule: each, Data: seconds.Data, Missed: stage.MissedEach}},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx) }()
	ticks := []time.Time{<-seen, <-seen, <-seen}
	stop()
	require.NoError(t, <-ended)
	slices.SortFunc(ticks, time.Time.Compare) // some may be worked on at the same time
	for i, tick := range ticks {
		require.True(t, tick.Equal(ticks[0].Truncate(time.Second).Add(time.Duration(i)*time.Second)), "%v", ticks)
	}
}
