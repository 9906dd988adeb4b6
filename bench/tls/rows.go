package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/nginx"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// names are the rows.
var names = []string{"echo", "http", "full", "resumed", "idle", "upload", "flood"}

// limits are the limits of daimon divided by a server.
var limits = map[string]map[string]float64{
	"echo":    {"goroutines": 0.75},
	"http":    {"net/http": 0.5, "nginx": 1.1},
	"full":    {"net/http": 1.05},
	"resumed": {"net/http": 1.05},
	"idle":    {"net/http": 0.45},
	"upload":  {"net/http": 0.45},
}

// aboveLimit is the error of a row whose figures are not good enough.
type aboveLimit struct{ error }

// measurement is what all rows have in common.
type measurement struct {
	Options
	out      io.Writer
	build    build.Builder
	identity identity.Files
	load     string // tls/load, compiled
}

func (m *measurement) row(ctx context.Context, name string) error {
	switch name {
	case "echo":
		return m.cpu(ctx, name, fmt.Sprintf("message of %d bytes", size), m.Exchanges, load.Generator{Conns: m.Conns})
	case "http":
		return m.cpu(ctx, name, "GET request", m.Exchanges, load.Generator{Conns: m.Conns})
	case "full", "resumed":
		clients := load.Generator{Conns: max(1, m.Conns/5), Flags: []string{"-handshakes", name}}
		return m.cpu(ctx, name, name+" handshake", m.Handshakes, clients)
	case "flood":
		return m.flood(ctx)
	default:
		return m.memory(ctx, name)
	}
}

// servers returns the servers of a row, in an order that puts compared servers near each other.
func (m *measurement) servers(row string) (all []*server.Process, err error) {
	candidates := []string{"daimon", "net/http", "control", "nginx"}
	switch row {
	case "echo":
		candidates = []string{"daimon", "goroutines", "control"}
	case "idle", "upload":
		candidates = []string{"daimon", "net/http", "nginx"}
	case "flood":
		candidates = []string{"daimon", "net/http"}
	}
	for _, name := range candidates {
		s := &server.Process{Name: name, Reactors: m.Reactors, Flags: m.identity.Flags()}
		switch err := m.compile(row, s); {
		case err == nginx.ErrMissing && !m.Limits:
			fmt.Fprintf(m.out, "nginx is left out: %v\n", err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		default:
			all = append(all, s)
		}
	}
	return all, nil
}

func (m *measurement) compile(row string, s *server.Process) (err error) {
	switch s.Name {
	case "daimon":
		if s.Program = m.Server; s.Program != "" {
			return nil
		}
		example := "examples/httpd"
		if row == "echo" {
			example = "examples/echo"
		}
		s.Program, err = m.build.Daimon(example)
		return err
	case "nginx":
		return nginx.Prepare(m.build, s, m.Nginx)
	}
	source := "http/nethttp"
	if row == "echo" {
		source = "echo/plain"
	}
	s.Program, err = m.build.Go(source)
	return err
}

// table has the ratios of daimon to the others, and that of the control to its twin.
func table(row string, servers []*server.Process) (t pairs.Table) {
	for _, s := range servers {
		t.Columns = append(t.Columns, s.Name)
	}
	for i, name := range t.Columns[1:] {
		if name == "control" {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i + 1, To: 1})
		} else {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: 0, To: i + 1, Limit: limits[row][name]})
		}
	}
	return t
}

func (m *measurement) judge(t pairs.Table, medians []float64) error {
	if m.Limits {
		if err := t.Judge(medians); err != nil {
			return aboveLimit{err}
		}
	}
	return nil
}

// cpu measures CPU time for an exchange.
func (m *measurement) cpu(ctx context.Context, row, what string, exchanges int, clients load.Generator) (err error) {
	clients.Program = m.load
	clients.Flags = append(clients.Flags, "-certificate", m.identity.Certificate)
	clients.CPU = -1 // handshakes are computed on any CPU
	if row == "echo" || row == "http" {
		if clients.CPU, err = load.CPU(m.Reactors, false); err != nil {
			return err
		}
	}
	servers, err := m.servers(row)
	if err != nil {
		return err
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	talks := make([]load.Talk, len(servers))
	for i, s := range servers {
		if talks[i], err = m.talk(row, s); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	run := func(i int) (float64, error) {
		cost, err := clients.Run(ctx, servers[i], talks[i], exchanges)
		return cost.CPU, err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := run(i); err != nil {
			return err
		}
	}
	fmt.Fprintf(m.out, "%s: server CPU per %s, ns; conns %d, %d of them a run, reactors %d, load on CPU %d (-1: any)\n",
		row, what, clients.Conns, exchanges, m.Reactors, clients.CPU)
	t := table(row, servers)
	medians, err := t.Measure(m.out, m.Pairs, run)
	if err != nil {
		return err
	}
	return m.judge(t, medians)
}

// size is that of an echoed message.
const size = 64

// talk is what is said to a server. That of HTTP is learned from the server itself.
func (m *measurement) talk(row string, s *server.Process) (load.Talk, error) {
	switch row {
	case "echo":
		return load.Echo(size), nil
	case "full", "resumed":
		return load.Talk{}, nil
	}
	request, err := answer.Request("", s.Addr())
	if err != nil {
		return load.Talk{}, err
	}
	config, err := load.Trust(m.identity.Certificate)
	if err != nil {
		return load.Talk{}, err
	}
	c, err := tls.Dial("tcp", s.Addr(), config)
	if err != nil {
		return load.Talk{}, err
	}
	defer c.Close()
	a, err := answer.Ask(c, request, answer.Hello)
	return a.Talk(request, 1), err
}

// upload is how long the body of an upload is: a record by itself, as long as can be.
const upload = 16 << 10

// memory measures the resident set for an idle connection.
func (m *measurement) memory(ctx context.Context, row string) error {
	if err := crowd.Fits(m.Idle); err != nil {
		return err
	}
	servers, err := m.servers(row)
	if err != nil {
		return err
	}
	config, err := load.Trust(m.identity.Certificate)
	if err != nil {
		return err
	}
	exchange := func(c net.Conn) error { return get(tls.Client(c, config)) }
	what := "a GET request each"
	if row == "upload" {
		exchange = func(c net.Conn) error { return put(tls.Client(c, config)) }
		what = fmt.Sprintf("a GET request with a body of %d bytes each", upload)
	}
	fmt.Fprintf(m.out, "%s: growth of the server's resident set per idle connection, bytes; conns %d, %s, reactors %d\n",
		row, m.Idle, what, m.Reactors)
	t := table(row, servers)
	medians, err := t.Measure(m.out, m.Pairs, func(i int) (float64, error) {
		return crowd.Each(ctx, servers[i], m.Idle, exchange)
	})
	if err != nil {
		return err
	}
	return m.judge(t, medians)
}

// get has a GET request answered. The client forgets TLS afterwards; the connection stays open.
func get(c *tls.Conn) error {
	request, err := answer.Request("", "localhost")
	if err == nil {
		_, err = answer.Ask(c, request, answer.Hello)
	}
	return err
}

// put has a request with a body answered. It is a GET request too, since all servers answer that.
func put(c *tls.Conn) error {
	head := fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", upload)
	if _, err := c.Write(head); err != nil {
		return err
	}
	_, err := answer.Ask(c, slices.Repeat([]byte("x"), upload), answer.Hello)
	return err
}
