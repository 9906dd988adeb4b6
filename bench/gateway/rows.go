package main

import (
	_ "embed" // haproxy.sh
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/nginx"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// row is what is measured. One figure of a pair is the result of run.
type row struct {
	name, unit string
	path       string  // of the requests
	content    string  // of the answers
	conns      int     // clients
	exchanges  int     // of a run, over all clients
	reactors   int     // of the proxies
	standing   bool    // proxies are started once, not for each run
	most       float64 // daimon's median; 0: any
	limits     limits
	run        func(*runner) (float64, error)
}

// limits are those of daimon divided by a server.
type limits map[string]float64

const ns = "CPU of the proxy per request, ns"

var rows = []row{
	{name: "short", unit: ns, path: "/short", content: answer.Hello, conns: 100, exchanges: 50000, reactors: 1,
		limits: limits{"nginx": 1, "net/http": 0.5}, standing: true, run: (*runner).cpu},
	{name: "short1", unit: ns, path: "/short", content: answer.Hello, conns: 1, exchanges: 20000, reactors: 1,
		standing: true, run: (*runner).cpu},
	{name: "long", unit: ns, path: "/long", content: long, conns: 10, exchanges: 1000, reactors: 1,
		limits: limits{"nginx": 1.2}, standing: true, run: (*runner).cpu},
	{name: "idle", unit: "growth of the proxy's resident set per stream, bytes", reactors: 1, most: 2048, run: (*runner).idle},
	{name: "abort", unit: "time from the reset of a client until the origin notices, p99, µs", exchanges: 1000, reactors: 1,
		most: 10000, run: (*runner).abort},
	{name: "reuse", unit: "connections to the origin per 100,000 requests", path: "/short", content: answer.Hello, conns: 100,
		exchanges: 20000, reactors: 2, most: 100, run: (*runner).reuse},
}

// names returns the names of all rows.
func names() (all []string) {
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

// columns are the servers, those that are compared near each other.
var columns = []string{"daimon", "nginx", "control", "haproxy", "net/http"}

// configuration is daimon's. By default it has 1,024 connections, and keeps 64.
const configuration = `
[[routes]]
group = "origin"
[[groups]]
name = "origin"
[[groups.backends]]
address = "%s"
max_conns = 100000
max_idle = 1000
timeouts = { idle = "10m" }
`

//go:embed haproxy.sh
var haproxy []byte

// servers compiles the proxies of a row. Those that are not installed are left out, unless the limits need them.
func (m *measurement) servers(r row, origin string) (all []*server.Process, err error) {
	for name := range strings.SplitSeq(m.Servers, ",") {
		s := &server.Process{Name: name, Reactors: r.reactors, Flags: []string{"-origin", origin}}
		switch err := m.compile(s, origin); {
		case (err == nginx.ErrMissing || errors.Is(err, fs.ErrNotExist)) && !m.Limits:
			fmt.Fprintf(m.out, "%s is left out: %v\n", name, err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		default:
			all = append(all, s)
		}
	}
	return all, nil
}

func (m *measurement) compile(s *server.Process, origin string) (err error) {
	switch s.Name {
	case "daimon":
		file := filepath.Join(m.build.To, "gateway.toml")
		if err := os.WriteFile(file, fmt.Appendf(nil, configuration, origin), 0o600); err != nil {
			return err
		}
		s.Flags = []string{"-config", file}
		s.Program, err = m.build.Daimon("examples/gateway")
	case "nginx", "control":
		err = nginx.Prepare(m.build, s, "")
		s.Flags = append(s.Flags, "-prefix", filepath.Join(m.build.To, s.Name))
	case "haproxy":
		if _, err := os.Stat("/usr/sbin/haproxy"); err != nil {
			return fmt.Errorf("%w (Debian: apt-get install haproxy)", err)
		}
		s.Program = filepath.Join(m.build.To, "haproxy.sh")
		err = os.WriteFile(s.Program, haproxy, 0o700)
	default:
		s.Program, err = m.build.Go("gateway/reverseproxy")
	}
	return err
}

// table has the ratios of daimon to the others, and that of the control to its twin.
func (r row) table(servers []*server.Process) (t pairs.Table) {
	for _, s := range servers {
		t.Columns = append(t.Columns, s.Name)
	}
	for to, name := range t.Columns {
		if of := slices.Index(t.Columns, "daimon"); of >= 0 && of != to && name != "control" {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: of, To: to, Limit: r.limits[name]})
		}
		if of := slices.Index(t.Columns, "control"); of >= 0 && name == "nginx" {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: of, To: to})
		}
	}
	return t
}
