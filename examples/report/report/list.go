package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// List writes a table of all tasks.
func (r *Reports) List(ctx context.Context, out io.Writer) error {
	tasks, err := r.Store.List(ctx, stage.Selection{Kind: kind})
	if err != nil {
		return err
	}
	table, now := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), time.Now()
	fmt.Fprintln(table, "ID\tSTAGE\tSTATUS\tATTEMPT\tAGAIN\tWORKER\tFILE\tFAILURE")
	for _, t := range tasks {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			t.ID, t.Stage, status(&t), t.Attempt, again(&t, now), worker(&t), shown(string(t.Data)),
			cmp.Or(failure(&t), "-"))
	}
	return table.Flush()
}

// status is the status of a task, and the one that was asked for.
func status(t *stage.Task) string {
	if t.Wanted != stage.Nothing {
		return fmt.Sprintf("%s (%s)", t.Status, t.Wanted)
	}
	return string(t.Status)
}

// worker names the worker of the task.
func worker(t *stage.Task) string {
	if t.Status != stage.InProcessing {
		return "-"
	}
	return t.Worker
}

// again is when the task may be claimed; one with a worker, when the lease has ended.
func again(t *stage.Task, now time.Time) string {
	switch {
	case !t.Runs():
		return "-"
	case !t.Due.After(now):
		return "now"
	case t.Status == stage.InProcessing: // while it is worked on, the lease is renewed
		return "-"
	}
	return "in " + t.Due.Sub(now).Round(100*time.Millisecond).String()
}
