package libraries

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for a machine that has no zones

	"github.com/netresearch/go-cron" // a fork of robfig/cron, which has had no release since 2020; it requires no others
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// A periodic task whose ticks a cron expression gives, in a time zone. The data of a task is what its processor needs
// to know of the tick.
func Example_cron() {
	weekdays, err := cron.ParseStandard("CRON_TZ=Europe/Vienna 30 6 * * MON-FRI")
	if err != nil {
		fmt.Println(err)
		return
	}
	reports := stage.Typed[time.Time]{Kind: "report"}
	write := func(_ context.Context, _ *store.Task, tick time.Time) (store.Commit, error) {
		fmt.Println("the report of", tick.Format(time.DateOnly))
		return nil, nil
	}
	_, err = stage.New(stage.Config{
		Store:      memory.New(nil),
		Kinds:      map[string]stage.Kind{"report": {Chain: stage.Begin("NEW").Then("WRITING", "write", "WRITTEN")}},
		Processors: map[string]stage.Processor{"write": reports.Processor(write)},
		Upkeep: stage.Upkeep{Periodic: map[string]stage.Periodic{
			"the daily report": {Kind: "report", Schedule: weekdays, Data: reports.Data, Missed: 5},
		}},
	})
	fmt.Println(err)

	friday := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(weekdays.Next(friday).UTC())
	// Output:
	// <nil>
	// 2026-05-04 04:30:00 +0000 UTC
}

// On 29 March 2026 the hour from 2 to 3 is skipped, and on 25 October it comes twice. So does a tick in it, although the
// documentation of the library says otherwise.
func TestCronAtTheSwitchesOfSummerTime(t *testing.T) {
	for _, row := range []struct{ expression, spring, autumn string }{
		{"30 1 * * *", "29 01:30 +0100, 30 01:30 +0200", "25 01:30 +0200, 26 01:30 +0100"},
		{"30 2 * * *", "29 03:30 +0200, 30 02:30 +0200", "25 02:30 +0200, 25 02:30 +0100, 26 02:30 +0100"},
		{"0 3 * * *", "29 03:00 +0200, 30 03:00 +0200", "25 03:00 +0100, 26 03:00 +0100"},
		{"0 1-3 * * *", "29 01:00 +0100, 29 03:00 +0200, 30 01:00 +0200, 30 02:00 +0200, 30 03:00 +0200",
			"25 01:00 +0200, 25 02:00 +0200, 25 02:00 +0100, 25 03:00 +0100, 26 01:00 +0100, 26 02:00 +0100, 26 03:00 +0100"},
	} {
		s, err := cron.ParseStandard("CRON_TZ=Europe/Vienna " + row.expression)
		require.NoError(t, err)
		vienna, err := time.LoadLocation("Europe/Vienna")
		require.NoError(t, err)
		for from, want := range map[time.Time]string{
			time.Date(2026, time.March, 29, 0, 0, 0, 0, vienna):   row.spring,
			time.Date(2026, time.October, 25, 0, 0, 0, 0, vienna): row.autumn,
		} {
			var ticks []string
			for at := s.Next(from.UTC()); at.Before(from.AddDate(0, 0, 2)); at = s.Next(at) {
				ticks = append(ticks, at.In(vienna).Format("2 15:04 -0700"))
			}
			require.Equal(t, want, strings.Join(ticks, ", "), row.expression)
		}
	}
}
