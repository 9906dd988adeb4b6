package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// measurement is what all rows have in common.
type measurement struct {
	Options
	out      io.Writer
	program  string // nethttp/server
	exact    string // internal/load/c/load.c, which compares every byte of an answer
	counting string // tls/load, which compares the status and the length
	root     string // of the files
	identity identity.Files
	summary  string  // of the rows so far, as Markdown
	above    []error // of medians above their limits
}

func (m *measurement) row(ctx context.Context, r row) error {
	on, err := load.CPU(m.Reactors, m.Apart)
	if err != nil {
		return err
	}
	origin, err := m.origin(ctx, on)
	if err != nil {
		return err
	}
	defer origin.Stop()
	servers := m.servers(r, "http://"+origin.Addr())
	if r.idle {
		fmt.Fprintf(m.out, "\n%s: growth of the server's resident set per idle connection, bytes; conns %d\n", r.name, r.conns)
		return m.measure(r, servers, func(s *server.Process) (load.Cost, error) {
			growth, err := crowd.Each(ctx, s, m.scaled(r.conns), func(c net.Conn) error {
				_, err := answer.Ask(c, r.request(), r.content)
				return err
			})
			return load.Cost{CPU: growth}, err
		})
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	clients := load.Generator{Program: m.exact, Conns: r.conns, CPU: on}
	if !r.exact() {
		clients.Program, clients.Flags = m.counting, []string{"-answer", strconv.Itoa(max(r.length, len(r.content)))}
	}
	if r.tls {
		clients.Flags = append(clients.Flags, "-certificate", m.identity.Certificate)
	}
	exchanges := max(r.conns, m.scaled(r.exchanges))
	run := func(s *server.Process) (load.Cost, error) {
		talk, err := r.talk(s)
		if err != nil {
			return load.Cost{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		return clients.Run(ctx, s, talk, exchanges)
	}
	for _, s := range servers { // warms up, counts nowhere
		if _, err := run(s); err != nil {
			return err
		}
	}
	fmt.Fprintf(m.out, "\n%s: server CPU per request, ns; conns %d, requests %d, reactors %d, load on CPU %d (-1: any)\n",
		r.name, r.conns, exchanges, m.Reactors, on)
	return m.measure(r, servers, run)
}

func (m *measurement) scaled(n int) int { return max(1, int(float64(n)*m.Scale)) }

// origin starts the server behind the proxies, where the load generator runs.
func (m *measurement) origin(ctx context.Context, on int) (*server.Process, error) {
	s := &server.Process{Name: "origin", Program: m.program, Reactors: 1, Anywhere: true, Flags: []string{"-root", m.root}}
	if on < 0 {
		return s, s.Start(ctx)
	}
	return s, cpu.On([]int{on}, func() error { return s.Start(ctx) })
}

// column is a server in all rows.
type column struct{ name, program, stack string }

// columns has the one that the others are compared with in front.
func (m *measurement) columns() []column {
	all := []column{{"net/http", m.program, "std"}, {"control", m.program, "std"}, {"nethttp", m.program, "daimon"}, {"inline", m.program, "inline"}}
	if m.Server != "" {
		all = append(all, column{"nethttp-other", m.Server, "daimon"}, column{"inline-other", m.Server, "inline"})
	}
	return all
}

// servers returns the servers of a row.
func (m *measurement) servers(r row, origin string) (all []*server.Process) {
	for _, c := range m.columns() {
		if c.stack == "inline" && r.inline == 0 {
			continue
		}
		flags := []string{"-stack", c.stack, "-root", m.root, "-origin", origin}
		if r.tls {
			flags = append(flags, m.identity.Flags()...)
		}
		if m.Profile != "" {
			flags = append(flags, "-profile", filepath.Join(m.Profile, r.name+"-"+strings.ReplaceAll(c.name, "/", "-")+".pprof"))
		}
		all = append(all, &server.Process{Name: c.name, Program: c.program, Reactors: m.Reactors, Flags: flags})
	}
	return all
}

// measure prints the table of a row, and adds a line to the summary.
func (m *measurement) measure(r row, servers []*server.Process, run func(*server.Process) (load.Cost, error)) error {
	limits := map[string]float64{"nethttp": r.most, "inline": r.inline}
	var t pairs.Table
	for i, s := range servers {
		t.Columns = append(t.Columns, s.Name)
		if i > 0 {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i, To: 0, Limit: limits[s.Name]})
		}
	}
	costs := map[string][]load.Cost{} // in the order of the pairs
	medians, err := t.Measure(m.out, m.Pairs, func(i int) (float64, error) {
		cost, err := run(servers[i])
		costs[servers[i].Name] = append(costs[servers[i].Name], cost)
		return cost.CPU, err
	})
	if err != nil {
		return err
	}
	m.summary += "| " + r.name
	for _, c := range m.columns() {
		m.summary += " | " + cell(c.name, costs)
	}
	m.summary += " |\n"
	if err := t.Judge(medians); err != nil && m.Limits {
		m.above = append(m.above, fmt.Errorf("%s: %w", r.name, err))
	}
	return nil
}

// cell has the CPU time of net/http in ns, and of others the ratio to it, then the switches: medians.
func cell(name string, costs map[string][]load.Cost) string {
	var ns, ratios, switches []float64
	for pair, cost := range costs[name] {
		ns, ratios = append(ns, cost.CPU), append(ratios, cost.CPU/costs["net/http"][pair].CPU)
		switches = append(switches, cost.Switches)
	}
	switch {
	case ns == nil:
		return ""
	case name == "net/http":
		return fmt.Sprintf("%.0f, %.2f", pairs.Of(ns).Median, pairs.Of(switches).Median)
	}
	ratio := pairs.Of(ratios)
	return fmt.Sprintf("%.2f (%.2f–%.2f), %.2f", ratio.Median, ratio.Min, ratio.Max, pairs.Of(switches).Median)
}
