// Package pairs measures servers in interleaved pairs and prints the table.
package pairs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table has a column for the cost of each server, then one for each ratio.
type Table struct {
	Columns []string
	Ratios  []Ratio
}

// Ratio is the cost of one column divided by that of another. Columns that are compared are best next to each other, so that
// they are measured shortly after one another.
type Ratio struct {
	Of, To int
	Limit  float64 // the median that is still good; 0: any
}

// Measure calls run for every column once in each pair, prints a line for each pair and for each spread, and returns the
// medians of the ratios. The order of the columns is reversed with every pair, so that a drift (temperature, other load)
// affects all columns alike.
func (t Table) Measure(out io.Writer, pairs int, run func(column int) (cost float64, err error)) ([]float64, error) {
	t.print(out, "pair", t.titles())
	order := make([]int, len(t.Columns))
	for i := range order {
		order[i] = i
	}
	figures := make([][]float64, len(t.Columns)+len(t.Ratios)) // each column's, from all pairs
	for pair := range pairs {
		costs := make([]float64, len(t.Columns))
		for _, i := range order {
			cost, err := run(i)
			if err != nil {
				return nil, err
			}
			costs[i] = cost
		}
		slices.Reverse(order)
		row := t.withRatios(costs)
		t.print(out, fmt.Sprint(pair+1), t.texts(row))
		for i, v := range row {
			figures[i] = append(figures[i], v)
		}
	}
	return t.printSpreads(out, figures)[len(t.Columns):], nil
}

func (t Table) withRatios(costs []float64) []float64 {
	row := slices.Clone(costs)
	for _, r := range t.Ratios {
		row = append(row, costs[r.Of]/costs[r.To])
	}
	return row
}

func (t Table) printSpreads(out io.Writer, figures [][]float64) (median []float64) {
	var low, high []float64
	for _, f := range figures {
		s := Of(f)
		median, low, high = append(median, s.Median), append(low, s.Min), append(high, s.Max)
	}
	t.print(out, "median", t.texts(median))
	t.print(out, "min", t.texts(low))
	t.print(out, "max", t.texts(high))
	if limits := t.limits(); strings.Join(limits, "") != "" {
		t.print(out, "limit", limits)
	}
	return median
}

func (t Table) titles() []string {
	row := slices.Clone(t.Columns)
	for _, r := range t.Ratios {
		row = append(row, t.name(r))
	}
	return row
}

func (t Table) name(r Ratio) string { return t.Columns[r.Of] + "/" + t.Columns[r.To] }

func (t Table) texts(row []float64) (texts []string) {
	for i, v := range row {
		if i < len(t.Columns) {
			texts = append(texts, fmt.Sprintf("%.0f", v))
		} else {
			texts = append(texts, fmt.Sprintf("%.3f", v))
		}
	}
	return texts
}

func (t Table) limits() []string {
	row := make([]string, len(t.Columns))
	for _, r := range t.Ratios {
		limit := ""
		if r.Limit > 0 {
			limit = fmt.Sprintf("%.3f", r.Limit)
		}
		row = append(row, limit)
	}
	return row
}

func (t Table) print(out io.Writer, title string, row []string) {
	line := fmt.Sprintf("%-7s", title)
	for i, name := range t.titles() {
		line += fmt.Sprintf("%*s", max(9, len(name)+2), row[i])
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}

// Judge returns an error that names the medians above their limits.
func (t Table) Judge(medians []float64) error {
	var above []error
	for i, r := range t.Ratios {
		if r.Limit > 0 && medians[i] > r.Limit {
			above = append(above, fmt.Errorf("the median ratio %s, %.3f, is above %.3f", t.name(r), medians[i], r.Limit))
		}
	}
	return errors.Join(above...)
}
