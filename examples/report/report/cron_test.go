package report_test

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // for a machine that has no zones

	"github.com/netresearch/go-cron" // a fork of robfig/cron, which has had no release since 2020; it requires no others

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
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
