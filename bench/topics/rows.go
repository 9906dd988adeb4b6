package main

import (
	_ "embed" // mosquitto.sh
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// row is a line-up of clients and servers.
type row struct {
	name    string
	burst   int      // messages that are published with one write
	apart   bool     // each subscriber has a publisher and a topic of its own
	servers []column // in an order that puts compared servers near each other
	ratios  []ratio
}

// column is a server.
type column struct {
	name, program string
	reactors      int
}

type ratio struct {
	of, to string
	limit  float64
}

var (
	brokers = []column{{"mqtt", "mqtt", 2}, {"daimon", "daimon", 2}, {"bare", "bare", 2}, {"control", "bare", 2},
		{"mosquitto", "mosquitto", 2}, {"mochi", "mochi", 2}}
	ratios = []ratio{{"mqtt", "bare", 1.3}, {"daimon", "bare", 1.3}, {"control", "bare", 0}, {"mqtt", "mosquitto", 0.35},
		{"daimon", "mosquitto", 0.35}, {"daimon", "mochi", 0.35}}
	rows = []row{
		{name: "one", burst: 1, servers: brokers, ratios: ratios},
		{name: "burst", burst: 20, servers: brokers, ratios: ratios},
		{name: "pairs", burst: 1, apart: true, servers: []column{{"two", "daimon", 2}, {"one", "daimon", 1}, {"control", "daimon", 1}},
			ratios: []ratio{{"two", "one", 1.05}, {"control", "one", 0}}},
	}
)

//go:embed mosquitto.sh
var script []byte

// compile compiles the servers. Without mosquitto the others can be measured.
func (r row) compile(out io.Writer, b build.Builder) (servers []*server.Process, err error) {
	for _, c := range r.servers {
		s := &server.Process{Name: c.name, Reactors: c.reactors}
		switch c.program {
		case "mqtt":
			s.Flags = []string{"-web", "127.0.0.1:0"}
			s.Program, err = b.Daimon("examples/mqtt")
		case "mosquitto":
			if _, missing := exec.LookPath("/usr/sbin/mosquitto"); missing != nil {
				fmt.Fprintf(out, "mosquitto is left out: %v (Debian: apt-get install mosquitto)\n", missing)
				continue
			}
			s.Program = filepath.Join(b.To, c.program)
			err = os.WriteFile(s.Program, script, 0o700)
		default:
			s.Program, err = b.Go("topics/" + c.program)
		}
		if err != nil {
			return nil, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// table has the ratios of the servers that are there.
func (r row) table(servers []*server.Process) (t pairs.Table) {
	for _, s := range servers {
		t.Columns = append(t.Columns, s.Name)
	}
	for _, x := range r.ratios {
		of, to := slices.Index(t.Columns, x.of), slices.Index(t.Columns, x.to)
		if min(of, to) >= 0 {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: of, To: to, Limit: x.limit})
		}
	}
	return t
}
