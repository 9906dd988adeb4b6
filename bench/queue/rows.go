package main

import (
	"fmt"
	"strings"

	"github.com/daimon-go/daimon/bench/queue/measure"
)

// queues are the columns. What is compared is next to each other.
var queues = []string{"daimon", "river", "control"}

// row is one benchmark.
type row struct {
	name, what string
	tasks      int
	views      []view // tables of pairs; none: the row prints samples
}

// view is a table of a row.
type view struct {
	what  string
	limit float64 // of daimon/river; 0: none
	cost  func(measure.Figures) float64
}

var (
	faster = 1 / 1.2 // as time: 1.2 times as many tasks in a second
	cost   = []view{
		{"time, ns for a task", faster, func(f measure.Figures) float64 { return f.Wall }},
		{"CPU of PostgreSQL and the worker together, ns for a task", 0.8, measure.Figures.CPU},
		{"CPU of PostgreSQL, ns for a task", 0, func(f measure.Figures) float64 { return f.Database }},
		{"CPU of the worker, ns for a task", 0, func(f measure.Figures) float64 { return f.Own }},
	}
	waits = []view{
		{"median, µs", 1, func(f measure.Figures) float64 { return f.Median / 1000 }},
		{"99 %, µs", 1, func(f measure.Figures) float64 { return f.P99 / 1000 }},
		cost[1], // at a low rate
	}
)

var rows = []row{
	{"drain", "tasks that do nothing, enqueued before", 20_000, cost},
	{"steady", "tasks that do nothing, enqueued one by one by 8 goroutines meanwhile", 10_000, cost},
	{"start", "from the call that enqueues to the task's begin, in one process", 300, waits},
	{"start-apart", "the same, enqueued by another process", 300, waits},
	{"bulk", "calls that enqueue 10,000 tasks each, while nothing works", 10_000, []view{
		{"time, ns for a task", 1, cost[0].cost}, {"CPU of both, ns for a task", 0, measure.Figures.CPU},
	}},
	{"snapshot", "tasks at a steady rate, while another session holds a snapshot", 1, nil},
	{"heartbeats", "1000 tasks at work, which only wait", 1000, nil},
}

func names() (all []string) {
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

// described has a line for each row.
func described() string {
	var text strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&text, "  %-12s %s\n", r.name, r.what)
	}
	return strings.TrimRight(text.String(), "\n")
}
