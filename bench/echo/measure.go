package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/daimon-go/daimon/bench/internal/server"
)

// Places in the row of servers. Everything is divided by the C server, which stands next to both the
// subject and its own control, so that the two ratios are taken over the same distance in time.
const (
	subject = iota
	base
)

// measure prints a line for each pair and one for each spread, and returns the subject's median ratio.
// The order of the servers is turned round with every pair: what drifts (temperature, neighbours) falls
// on both sides alike.
func measure(ctx context.Context, out io.Writer, o Options, servers []*server.Process) (float64, error) {
	order := make([]int, len(servers))
	for i, s := range servers {
		order[i] = i
		if _, err := o.Load.run(ctx, s); err != nil { // warms up, counts nowhere
			return 0, err
		}
	}
	fmt.Fprintf(out, "server CPU per message of %d bytes, ns; conns %d, messages %d, reactors %d, load on CPU %d (-1: any)\n",
		o.Load.Size, o.Load.Conns, o.Load.Messages, o.Reactors, o.Load.CPU)
	printHeader(out, servers)
	columns := make([][]float64, 2*len(servers)) // costs, then ratios
	for pair := range o.Pairs {
		costs := make([]float64, len(servers))
		for _, i := range order {
			cost, err := o.Load.run(ctx, servers[i])
			if err != nil {
				return 0, err
			}
			costs[i] = cost.CPU
		}
		slices.Reverse(order)
		row := withRatios(costs)
		printRow(out, fmt.Sprint(pair+1), row)
		for i, v := range row {
			columns[i] = append(columns[i], v)
		}
	}
	return printSpreads(out, columns), nil
}

// withRatios appends the ratio of each cost to the C server's.
func withRatios(costs []float64) []float64 {
	row := slices.Clone(costs)
	for _, c := range costs {
		row = append(row, c/costs[base])
	}
	return row
}

func printHeader(out io.Writer, servers []*server.Process) {
	fmt.Fprintf(out, "%-7s", "pair")
	for _, s := range servers {
		fmt.Fprintf(out, "%9s", s.Name)
	}
	for i, s := range servers {
		if i != base {
			fmt.Fprintf(out, "%16s", s.Name+"/"+servers[base].Name)
		}
	}
	fmt.Fprintln(out)
}

// printRow leaves out the C server's ratio to itself.
func printRow(out io.Writer, title string, row []float64) {
	n := len(row) / 2
	fmt.Fprintf(out, "%-7s", title)
	for _, cost := range row[:n] {
		fmt.Fprintf(out, "%9.0f", cost)
	}
	for i, ratio := range row[n:] {
		if i != base {
			fmt.Fprintf(out, "%16.3f", ratio)
		}
	}
	fmt.Fprintln(out)
}

func printSpreads(out io.Writer, columns [][]float64) (ratio float64) {
	var median, low, high []float64
	for _, c := range columns {
		s := spread(c)
		median, low, high = append(median, s.Median), append(low, s.Min), append(high, s.Max)
	}
	printRow(out, "median", median)
	printRow(out, "min", low)
	printRow(out, "max", high)
	return median[len(columns)/2+subject]
}
