package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/process/measure"
)

// tables measures r and prints its tables, the first one while it measures. above names the medians above
// their limits.
func (o Options) tables(ctx context.Context, out io.Writer, p programs, r row) (above, err error) {
	n := o.Pairs
	if r.atMost > 0 {
		n = min(n, r.atMost)
	}
	fmt.Fprintf(out, "\n%s: %s\n", r.name, r.what)
	var all []pair
	first := newTable(r.titles(), r.ratios)
	medians, err := first.Measure(out, n, func(i int) (float64, error) {
		if len(all) == 0 || len(all[len(all)-1]) == len(r.columns) {
			all = append(all, pair{})
		}
		c := r.columns[i]
		f, err := o.run(ctx, p, c, r.name)
		all[len(all)-1][c.name] = f
		return max(c.goal, r.cost(f)), err
	})
	if err != nil {
		return nil, err
	}
	above = first.Judge(medians)
	for _, v := range r.views {
		more, err := v.print(out, r, all)
		if err != nil {
			return nil, err
		}
		above = errors.Join(above, more)
	}
	return above, nil
}

// pair has the figures of one run of each program of a row, by the titles of the columns.
type pair map[string]measure.Figures

// print prints the spreads of the view, and names the medians above their limits.
func (v view) print(out io.Writer, r row, all []pair) (above, err error) {
	fmt.Fprintf(out, "\n%s, %s\n", r.name, v.what)
	columns := v.titles(r)
	table := newTable(columns, v.ratios)
	var text strings.Builder
	calls := 0
	medians, err := table.Measure(&text, len(all), func(i int) (float64, error) {
		of := all[calls/len(columns)]
		calls++
		return v.cost(of, columns[i]), nil
	})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text.String()) {
		if line[0] < '0' || line[0] > '9' { // not the lines of pairs
			fmt.Fprint(out, line)
		}
	}
	return table.Judge(medians), nil
}

func (v view) titles(r row) (all []string) {
	if v.columns != nil {
		return v.columns
	}
	for _, c := range r.columns {
		if c.program != "" {
			all = append(all, c.name)
		}
	}
	return all
}

func newTable(columns []string, ratios []ratio) pairs.Table {
	t := pairs.Table{Columns: columns}
	for _, x := range ratios {
		t.Ratios = append(t.Ratios, pairs.Ratio{Of: slices.Index(columns, x.of), To: slices.Index(columns, x.to), Limit: x.limit})
	}
	return t
}
