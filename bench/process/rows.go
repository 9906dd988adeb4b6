package main

import (
	"strings"

	"github.com/daimon-go/daimon/bench/process/measure"
)

// row is one benchmark, which all programs have.
type row struct {
	name    string
	what    string // what is measured, and the unit
	columns []column
	ratios  []ratio
	atMost  int // bounds the pairs; 0: no bound
	cost    func(measure.Figures) float64
	views   []view
}

// column is a program, or a goal.
type column struct {
	name, program string
	row           string // of the program; "": the row with the same name
	reactors      int    // of Daimon; bare threads
	procs         int    // GOMAXPROCS of the others; 0: the default
	laps          int
	goal          float64 // without a program
}

// ratio is a ratio of two columns. The limit is the largest median that passes; 0: any.
type ratio struct {
	of, to string
	limit  float64
}

// view is another table of the same runs. Without columns it has a column for each program of the row.
type view struct {
	what    string
	columns []string
	ratios  []ratio
	cost    func(p pair, column string) float64
}

// rows are all benchmarks. The laps are chosen so that a run takes some tenths of a second at most: many pairs of short
// runs say more than few pairs of long ones.
var rows = []row{
	{
		name: "hand-off",
		what: "two answer each other, on one reactor: ns a round trip of two messages",
		columns: []column{
			{name: "daimon", program: "daimon", reactors: 1, laps: 20},
			{name: "control", program: "daimon", reactors: 1, laps: 20},
			{name: "goal", goal: 120},
			{name: "channels", program: "goroutines", laps: 10},
			{name: "on 1 CPU", program: "goroutines", procs: 1, laps: 10},
			{name: "actors", program: "actors", laps: 1},
		},
		ratios: []ratio{{"control", "daimon", 0}, {"daimon", "goal", 1}, {"daimon", "channels", 0.25}, {"daimon", "on 1 CPU", 0}, {"daimon", "actors", 0}},
		cost:   wall,
		views:  []view{cpu, allocations},
	},
	onTwoReactors("flood", "one sends what another receives, through a mailbox of 1024, on two reactors: ns a message", 20, 20, 5, crossed),
	onTwoReactors("bounce", "64 balls among 256, each thrown to anybody, on two reactors: ns a message", 20, 10, 1, crossed),
	{
		name: "spawn",
		what: "spawned, run, ended, 64 at a time, on one reactor: ns each",
		columns: []column{
			{name: "daimon", program: "daimon", reactors: 1, laps: 20},
			{name: "control", program: "daimon", reactors: 1, laps: 20},
			{name: "goal", goal: 200},
			{name: "on two", program: "daimon", reactors: 2, laps: 10},
			{name: "go", program: "goroutines", laps: 20},
			{name: "actors", program: "actors", laps: 1},
		},
		ratios: []ratio{{"control", "daimon", 0}, {"daimon", "goal", 1}, {"on two", "daimon", 0}, {"daimon", "go", 0}, {"daimon", "actors", 0}},
		cost:   wall,
		views:  []view{cpu, allocations},
	},
	{
		name: "sleep",
		what: "asleep, each after one message: bytes of heap and stacks each",
		columns: []column{
			{name: "daimon", program: "daimon", reactors: 2, laps: 100},
			{name: "goal", goal: 256},
			{name: "no message", program: "daimon", row: "fresh", reactors: 2, laps: 100},
			{name: "channels", program: "goroutines", laps: 10},
			{name: "actors", program: "actors", laps: 10},
		},
		ratios: []ratio{{"daimon", "goal", 1}, {"daimon", "channels", 0}, {"daimon", "actors", 0}},
		atMost: 2,
		cost:   func(f measure.Figures) float64 { return f.Bytes },
	},
	{
		name: "work",
		what: "64 that always have something to do: ns a slice of work",
		columns: []column{
			{name: "1 thread", program: "goroutines", row: "threads", reactors: 1, laps: 2},
			{name: "2 threads", program: "goroutines", row: "threads", reactors: 2, laps: 2},
			{name: "1 reactor", program: "daimon", reactors: 1, laps: 2},
			{name: "2 reactors", program: "daimon", reactors: 2, laps: 2},
		},
		ratios: []ratio{{"1 reactor", "1 thread", 0}, {"2 reactors", "2 threads", 0}},
		cost:   wall,
		views: []view{{
			what:    "what two take, per mille of one; 0.9 of the gain of threads is 1/0.9 of their time",
			columns: []string{"threads", "reactors"},
			ratios:  []ratio{{"reactors", "threads", 1 / 0.9}},
			cost: func(p pair, column string) float64 {
				return 1000 * p["2 "+column].Wall / p["1 "+strings.TrimSuffix(column, "s")].Wall
			},
		}},
	},
	{
		name: "light",
		what: "a message to each of four every 200 µs, all else at rest: CPU time of all threads, ns for the four",
		columns: []column{
			{name: "daimon", program: "daimon", reactors: 2, laps: 5},
			{name: "control", program: "daimon", reactors: 2, laps: 5},
			{name: "goal", goal: 40_000},
			{name: "on one", program: "daimon", reactors: 1, laps: 5},
			{name: "channels", program: "goroutines", laps: 5},
			{name: "actors", program: "actors", laps: 5},
		},
		ratios: []ratio{{"control", "daimon", 0}, {"daimon", "goal", 1}, {"daimon", "on one", 0}, {"daimon", "channels", 0}, {"daimon", "actors", 0}},
		cost:   func(f measure.Figures) float64 { return f.CPU },
	},
	{
		name: "calls",
		what: "a goroutine calls a process, beside 64 tasks of 100 µs on one of two reactors: ns a call",
		columns: []column{
			{name: "daimon", program: "daimon", reactors: 2, laps: 5},
			{name: "control", program: "daimon", reactors: 2, laps: 5},
			{name: "no tasks", program: "daimon", row: "calls-idle", reactors: 2, laps: 5},
		},
		ratios: []ratio{{"control", "daimon", 0}, {"daimon", "no tasks", 3}},
		cost:   wall,
	},
	onTwoReactors("fan-in", "1000 send 100 messages each to one, on two reactors: ns a message", 5, 10, 10),
	onTwoReactors("exchange", "2000 pairs with 200 exchanges each, on two reactors: ns a message", 2, 1, 1),
}

// onTwoReactors returns a row of messages, with the laps of Daimon, channels and actors.
func onTwoReactors(name, what string, daimon, channels, actors int, more ...view) row {
	return row{
		name: name,
		what: what,
		columns: []column{
			{name: "daimon", program: "daimon", reactors: 2, laps: daimon},
			{name: "control", program: "daimon", reactors: 2, laps: daimon},
			{name: "goal", goal: 500},
			{name: "channels", program: "goroutines", procs: 2, laps: channels},
			{name: "actors", program: "actors", procs: 2, laps: actors},
		},
		ratios: []ratio{{"control", "daimon", 0}, {"daimon", "goal", 1}, {"daimon", "channels", 0}, {"daimon", "actors", 0}},
		cost:   wall,
		views:  append([]view{cpu, allocations}, more...),
	}
}

func wall(f measure.Figures) float64 { return f.Wall }

// If the machine runs other programs, CPU time varies less than time.
var (
	cpu         = view{what: "CPU time of all threads, ns", cost: func(p pair, column string) float64 { return p[column].CPU }}
	allocations = view{what: "allocations, of 1000", cost: func(p pair, column string) float64 { return 1000 * p[column].Allocs }}
	crossed     = view{what: "messages that were sent on the other reactor, of 1000", columns: []string{"daimon"},
		cost: func(p pair, column string) float64 { return 1000 * p[column].Crossed }}
)

func names() (all []string) {
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

func (r row) titles() (all []string) {
	for _, c := range r.columns {
		all = append(all, c.name)
	}
	return all
}
