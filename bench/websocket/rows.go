package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// row is a row of the table in the README.
type row struct {
	name    string
	servers []string // in an order that puts compared servers near each other
	control string   // the server that is measured twice
	limits  map[string]float64
	measure func(*measurement, context.Context, row, []*server.Process) error
}

var rows = []row{
	{"echo", []string{"daimon", "gws", "control", "gobwas", "gorilla", "coder"}, "gws",
		map[string]float64{"gws": 0.8, "gobwas": 0.8, "gorilla": 0.6, "coder": 0.6}, (*measurement).echo},
	{"idle", []string{"daimon", "gws", "gobwas", "control", "gorilla", "coder"}, "gobwas",
		map[string]float64{"gws": 0.2, "gobwas": 0.2, "gorilla": 0.125, "coder": 0.125}, (*measurement).idle},
	{"broadcast", []string{"daimon", "bare", "control", "gorilla"}, "bare",
		map[string]float64{"bare": 1.3, "gorilla": 0.8}, (*measurement).broadcast},
}

var names = func() (names []string) {
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}()

// servers are the names of all servers.
var servers = func() (names []string) {
	for _, r := range rows {
		for _, name := range r.servers {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}()

// aboveLimit is the error of a row whose figures are not good enough.
type aboveLimit struct{ error }

// measurement is what all rows have in common.
type measurement struct {
	Options
	out   io.Writer
	build build.Builder
	load  string // c/load.c, compiled
}

func (m *measurement) row(ctx context.Context, r row) error {
	chosen := r.servers
	if m.Servers != "" {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(name string) bool {
			return !slices.Contains(strings.Split(m.Servers, ","), name)
		})
	}
	reactors := m.Reactors
	if r.name == "broadcast" {
		reactors = 2
	}
	var servers []*server.Process
	for _, name := range chosen {
		s := &server.Process{Name: name, Reactors: reactors}
		if name == "control" {
			name = r.control
		}
		if err := m.compile(r.name, name, s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		servers = append(servers, s)
	}
	return r.measure(m, ctx, r, servers)
}

func (m *measurement) compile(row, name string, s *server.Process) (err error) {
	switch name {
	case "daimon":
		switch {
		case row == "broadcast":
			s.Program, err = m.build.Go("websocket/broadcast")
		case m.Server != "":
			s.Program = m.Server
		default:
			s.Program, err = m.build.Daimon("examples/websocket-echo")
		}
		return err
	case "bare":
		s.Program, err = m.build.C("websocket/c/bare.c")
		return err
	}
	s.Program, err = m.build.Go("websocket/" + name)
	return err
}

// table has the ratios of daimon to the others, and that of the control to its twin.
func (r row) table(servers []*server.Process) (t pairs.Table) {
	for _, s := range servers {
		t.Columns = append(t.Columns, s.Name)
	}
	of := func(name string) int { return slices.Index(t.Columns, name) }
	for i, name := range t.Columns {
		switch {
		case name == "control" && of(r.control) >= 0:
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i, To: of(r.control)})
		case name != "control" && i > 0 && of("daimon") >= 0:
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: of("daimon"), To: i, Limit: r.limits[name]})
		}
	}
	return t
}

func (m *measurement) judge(t pairs.Table, medians []float64, err error) error {
	if err == nil && m.Limits {
		if err = t.Judge(medians); err != nil {
			err = aboveLimit{err}
		}
	}
	return err
}

// echo measures CPU time for a message that comes back.
func (m *measurement) echo(ctx context.Context, r row, servers []*server.Process) (err error) {
	clients := load.Generator{Program: m.load, Conns: m.Conns}
	if clients.CPU, err = load.CPU(m.Reactors, m.Apart); err != nil {
		return err
	}
	title := fmt.Sprintf("echo: server CPU per %s of %d bytes, ns; conns %d, messages %d, reactors %d, load on CPU %d (-1: any)",
		m.kind(), m.Size, m.Conns, m.Messages, m.Reactors, clients.CPU)
	return m.cpu(ctx, r, servers, clients, m.talk("/ws", m.Size, 1), m.Messages, 1, title)
}

// broadcast measures CPU time for a message on its way to one of many.
func (m *measurement) broadcast(ctx context.Context, r row, servers []*server.Process) error {
	if err := crowd.Fits(m.Receivers); err != nil {
		return err
	}
	clients := load.Generator{Program: m.load, Flags: []string{"-all"}, Conns: m.Receivers, CPU: -1}
	title := fmt.Sprintf("broadcast: server CPU per delivery of %d bytes, ns; %d broadcasts to %d connections, %d at a time, reactors 2",
		m.Long, m.Broadcasts, m.Receivers, m.Burst)
	bursts := max(1, m.Broadcasts/m.Burst)
	return m.cpu(ctx, r, servers, clients, m.talk("/broadcast", m.Long, m.Burst), bursts, m.Receivers*m.Burst, title)
}

// cpu measures the CPU time of the exchanges of one talk, which have so many parts each.
func (m *measurement) cpu(ctx context.Context, r row, servers []*server.Process, clients load.Generator, talk load.Talk, exchanges, parts int, title string) error {
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	run := func(i int) (float64, error) {
		cost, err := clients.Run(ctx, servers[i], talk, exchanges)
		return cost.CPU / float64(parts), err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := run(i); err != nil {
			return err
		}
	}
	fmt.Fprintln(m.out, title)
	t := r.table(servers)
	medians, err := t.Measure(m.out, m.Pairs, run)
	return m.judge(t, medians, err)
}

// idle measures the resident set for an idle connection.
func (m *measurement) idle(ctx context.Context, r row, servers []*server.Process) error {
	if err := crowd.Fits(m.Idle); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "idle: growth of the server's resident set per idle connection, bytes; conns %d, one %s of %d bytes each, reactors %d\n",
		m.Idle, m.kind(), m.Size, m.Reactors)
	talk := m.talk("/ws", m.Size, 1)
	t := r.table(servers)
	medians, err := t.Measure(m.out, m.Pairs, func(i int) (float64, error) {
		return crowd.Each(ctx, servers[i], m.Idle, exchange(talk))
	})
	return m.judge(t, medians, err)
}

func (m *measurement) kind() string {
	if m.Text {
		return "text"
	}
	return "message"
}
