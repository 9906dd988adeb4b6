package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/queue/measure"
)

// measurement is what all rows have in common.
type measurement struct {
	Options
	*place
	out io.Writer
}

// row measures r and prints its tables, the first one while it measures. above names the medians above their limits.
func (m *measurement) row(ctx context.Context, r row) (above, err error) {
	fmt.Fprintf(m.out, "\n%s: %s\n", r.name, r.what)
	columns := strings.Split(m.Queues, ",")
	if r.views == nil {
		return nil, m.long(ctx, r, columns)
	}
	var all []measure.Figures // in the order of the runs, which is the same in all tables
	for i, v := range r.views {
		out := m.out
		if i > 0 {
			out = spreads{m.out}
		}
		fmt.Fprintf(m.out, "\n%s, %s\n", r.name, v.what)
		t, calls := v.table(columns), 0
		medians, err := t.Measure(out, m.Pairs, func(column int) (float64, error) {
			if i == 0 {
				f, err := m.run(ctx, r, columns[column])
				if err != nil {
					return 0, err
				}
				all = append(all, f)
			}
			calls++
			return v.cost(all[calls-1]), nil
		})
		if err != nil {
			return nil, err
		}
		above = errors.Join(above, t.Judge(medians))
	}
	return above, nil
}

// table has the ratios of daimon and of the control to River.
func (v view) table(columns []string) pairs.Table {
	t := pairs.Table{Columns: columns}
	river := slices.Index(columns, "river")
	for i, name := range columns {
		switch {
		case river < 0 || i == river:
		case name == "daimon":
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i, To: river, Limit: v.limit})
		default:
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i, To: river})
		}
	}
	return t
}

// spreads leaves out the lines of pairs.
type spreads struct{ to io.Writer }

func (s spreads) Write(line []byte) (int, error) {
	if line[0] < '0' || line[0] > '9' {
		return s.to.Write(line)
	}
	return len(line), nil
}

// long measures a row that prints samples.
func (m *measurement) long(ctx context.Context, r row, columns []string) error {
	for _, queue := range columns {
		if queue == "control" {
			continue
		}
		f, err := m.run(ctx, r, queue)
		if err != nil {
			return err
		}
		fmt.Fprintf(m.out, "\n%s, %s\n", r.name, queue)
		line := strings.Repeat("%10s", 13)
		fmt.Fprintf(m.out, line+"\n", "after", "tasks/s", "µs CPU", "CPUs", "claims/s", "µs claim", "99 %", "rows/s", "HOT/s", "WAL KiB/s", "dead", "table KiB", "index KiB")
		for i, s := range f.Samples {
			second := s.After.Seconds()
			if i > 0 {
				second -= f.Samples[i-1].After.Seconds()
			}
			text := func(v float64) string { return fmt.Sprintf("%.0f", v) }
			fmt.Fprintf(m.out, line+"\n", s.After, text(s.Tasks), text(s.CPU/1000), fmt.Sprintf("%.3f", s.Busy),
				text(float64(s.Claims)/second), text(s.Claim/1000), text(s.SlowClaim/1000), text(s.Updates), text(s.HotUpdates),
				text(s.WAL/1024), fmt.Sprint(s.Dead), fmt.Sprint(s.Table/1024), fmt.Sprint(s.Indexes/1024))
		}
	}
	return nil
}
