package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/bench/nethttp/site"
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
	summary       string // of the rows so far, as Markdown
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
				_, err := answer.Ask(c, r.talk().Say, site.Hello)
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
	clients := load.Generator{Program: m.load, Flags: []string{"-answer", fmt.Sprint(r.answer)}, Conns: r.conns, CPU: on}
	if r.tls {
		clients.Flags = append(clients.Flags, "-certificate", m.identity.Certificate)
	}
	run := func(s *server.Process) (load.Cost, error) {
		return clients.Run(ctx, s, r.talk(), max(r.conns, m.scaled(r.exchanges)))
	}
	for _, s := range servers { // warms up, counts nowhere
		if _, err := run(s); err != nil {
			return err
		}
	}
	fmt.Fprintf(m.out, "\n%s: server CPU per request, ns; conns %d, requests %d, reactors %d, load on CPU %d (-1: any)\n",
		r.name, r.conns, max(r.conns, m.scaled(r.exchanges)), m.Reactors, on)
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

// servers has the servers of a row. The others are compared with the first one.
func (m *measurement) servers(r row, origin string) (all []*server.Process) {
	for _, c := range []struct{ name, program, stack string }{
		{"net/http", m.program, "std"}, {"control", m.program, "std"},
		{"nethttp", m.program, "daimon"}, {"inline", m.program, "inline"},
		{"nethttp-other", m.Server, "daimon"}, {"inline-other", m.Server, "inline"},
	} {
		if c.program == "" || c.stack == "inline" && r.inline == 0 {
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
	costs := make([][]load.Cost, len(servers)) // by server and pair
	medians, err := t.Measure(m.out, m.Pairs, func(i int) (float64, error) {
		cost, err := run(servers[i])
		costs[i] = append(costs[i], cost)
		return cost.CPU, err
	})
	if err != nil {
		return err
	}
	m.summary += "| " + r.name
	spread := func(column int, figure func(of, to load.Cost) float64) pairs.Spread {
		var all []float64
		for pair, of := range costs[column] {
			all = append(all, figure(of, costs[0][pair]))
		}
		return pairs.Of(all)
	}
	for i := range servers {
		m.summary += fmt.Sprintf(" | %.0f, %.2f", spread(i, func(of, _ load.Cost) float64 { return of.CPU }).Median,
			spread(i, func(of, _ load.Cost) float64 { return of.Switches }).Median)
	}
	for i := range servers[1:] {
		s := spread(i+1, func(of, to load.Cost) float64 { return of.CPU / to.CPU })
		m.summary += fmt.Sprintf(" | %.2f (%.2f–%.2f)", s.Median, s.Min, s.Max)
	}
	m.summary += " |\n"
	if err := t.Judge(medians); err != nil && m.Limits {
		return aboveLimit{fmt.Errorf("%s: %w", r.name, err)}
	}
	return nil
}
