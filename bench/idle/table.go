package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// printTable prints the medians of all rounds, as tables for a Markdown page.
func printTable(out io.Writer, names []string, all map[string][]result) {
	fmt.Fprint(out, "\nnothing happens\n\n| strategy | CPU | wake-ups a second |\n|---|---|---|\n")
	for _, name := range names {
		cpu := median(all[name], func(r result) float64 { return r.rest.cpu })
		wakeups := median(all[name], func(r result) float64 { return r.rest.wakeups })
		fmt.Fprintf(out, "| %s | %.2f %% | %.1f |\n", name, 100*cpu, wakeups)
	}
	for i, l := range loads {
		fmt.Fprintf(out, "\n%s\n\n| strategy | answer, median | answer, 99 %% | CPU | CPU per message | messages a second |\n|---|---|---|---|---|---|\n", l.name)
		for _, name := range names {
			of := func(f func(cost) float64) float64 {
				return median(all[name], func(r result) float64 { return f(r.loads[i]) })
			}
			fmt.Fprintf(out, "| %s | %.0f µs | %.0f µs | %.0f %% | %.1f µs | %.0f |\n", name,
				of(func(c cost) float64 { return micros(c.median) }),
				of(func(c cost) float64 { return micros(c.nineNine) }),
				of(func(c cost) float64 { return 100 * c.cpu }),
				of(func(c cost) float64 { return c.perMessage / 1000 }),
				of(func(c cost) float64 { return c.rate }))
		}
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// median is the middle one of a figure of all results; of an even number the upper one.
func median(all []result, figure func(result) float64) float64 {
	var v []float64
	for _, r := range all {
		v = append(v, figure(r))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
