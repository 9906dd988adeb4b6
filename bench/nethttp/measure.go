package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// aboveLimit is the error of a row whose figures are not good enough.
type aboveLimit struct{ error }

// measurement is what all rows have in common.
type measurement struct {
	Options
	out           io.Writer
	program, load string // compiled
	root          string // of the files
	identity      identity.Files
	summary       string // of the rows so far
}

// row starts the servers of a row, measures them, and ends them.
func (m *measurement) row(ctx context.Context, r row) error {
	clients := load.Generator{Program: m.load, Flags: []string{"-answer", fmt.Sprint(r.answer)}, Conns: r.conns}
	if r.tls {
		clients.Flags = append(clients.Flags, "-certificate", m.identity.Certificate)
	}
	var err error
	if clients.CPU, err = load.CPU(m.Reactors, m.Apart); err != nil {
		return err
	}
	origin, err := m.origin(ctx, clients.CPU)
	if err != nil {
		return err
	}
	defer origin.Stop()
	servers := m.servers(r, "http://"+origin.Addr())
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	return m.measure(ctx, r, servers, clients)
}

// origin starts the server behind the proxies, where the load generator runs.
func (m *measurement) origin(ctx context.Context, on int) (*server.Process, error) {
	s := &server.Process{Name: "origin", Program: m.program, Reactors: 1, Anywhere: true, Flags: []string{"-root", m.root}}
	var cpus []int
	if on >= 0 {
		cpus = []int{on}
	}
	return s, cpu.On(cpus, func() error { return s.Start(ctx) })
}

// servers has the servers of a row. The first is the one that the others are compared with.
func (m *measurement) servers(r row, origin string) (all []*server.Process) {
	add := func(name, program, stack string) {
		s := &server.Process{Name: name, Program: program, Reactors: m.Reactors}
		s.Flags = []string{"-stack", stack, "-root", m.root, "-origin", origin}
		if r.tls {
			s.Flags = append(s.Flags, m.identity.Flags()...)
		}
		if m.Profile != "" {
			s.Flags = append(s.Flags, "-profile", filepath.Join(m.Profile, r.name+"-"+strings.ReplaceAll(name, "/", "-")+".pprof"))
		}
		all = append(all, s)
	}
	both := func(suffix, program string) {
		add("nethttp"+suffix, program, "daimon")
		if r.inline > 0 {
			add("inline"+suffix, program, "inline")
		}
	}
	add("net/http", m.program, "std")
	add("control", m.program, "std")
	both("", m.program)
	if m.Server != "" {
		both("-other", m.Server)
	}
	return all
}

func (m *measurement) measure(ctx context.Context, r row, servers []*server.Process, clients load.Generator) error {
	exchanges := max(r.conns, int(float64(r.exchanges)*m.Scale))
	costs := make([][]load.Cost, len(servers))
	run := func(i int) (float64, error) {
		cost, err := clients.Run(ctx, servers[i], r.talk(), exchanges)
		costs[i] = append(costs[i], cost)
		return cost.CPU, err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := run(i); err != nil {
			return err
		}
	}
	clear(costs)
	fmt.Fprintf(m.out, "\n%s: server CPU per request, ns; conns %d, requests %d, reactors %d, load on CPU %d (-1: any)\n",
		r.name, r.conns, exchanges, m.Reactors, clients.CPU)
	t := r.table(servers)
	medians, err := t.Measure(m.out, m.Pairs, run)
	if err != nil {
		return err
	}
	m.summarize(r, servers, costs)
	if err := t.Judge(medians); err != nil && m.Limits {
		return aboveLimit{fmt.Errorf("%s: %w", r.name, err)}
	}
	return nil
}

// table has the ratios to the first server.
func (r row) table(servers []*server.Process) (t pairs.Table) {
	limits := map[string]float64{"nethttp": r.most, "inline": r.inline}
	for i, s := range servers {
		t.Columns = append(t.Columns, s.Name)
		if i > 0 {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i, To: 0, Limit: limits[s.Name]})
		}
	}
	return t
}

// summarize adds a line of Markdown, and the heads above the first.
func (m *measurement) summarize(r row, servers []*server.Process, costs [][]load.Cost) {
	line := "| " + r.name
	for _, of := range costs {
		line += fmt.Sprintf(" | %.0f, %.2f", spread(of, func(pair int) float64 { return of[pair].CPU }).Median,
			spread(of, func(pair int) float64 { return of[pair].Switches }).Median)
	}
	for _, of := range costs[1:] {
		s := spread(of, func(pair int) float64 { return of[pair].CPU / costs[0][pair].CPU })
		line += fmt.Sprintf(" | %.2f (%.2f–%.2f)", s.Median, s.Min, s.Max)
	}
	m.summary += line + " |\n"
}

// spread is that of a figure of each pair.
func spread(of []load.Cost, figure func(pair int) float64) pairs.Spread {
	var all []float64
	for pair := range of {
		all = append(all, figure(pair))
	}
	return pairs.Of(all)
}
