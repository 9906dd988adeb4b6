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
	servers []string // in an order that puts compared servers near each other
	ratios  []ratio
}

type ratio struct {
	of, to string
	limit  float64
}

var (
	brokers = []string{"bare", "control", "mosquitto", "mochi"}
	ratios  = []ratio{{"control", "bare", 0}}
	rows    = []row{
		{name: "one", burst: 1, servers: brokers, ratios: ratios},
		{name: "burst", burst: 20, servers: brokers, ratios: ratios},
	}
)

//go:embed mosquitto.sh
var script []byte

// compile compiles the servers. Without mosquitto the others can be measured.
func (r row) compile(out io.Writer, dir string) (servers []*server.Process, err error) {
	b, err := build.Into(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range r.servers {
		s := &server.Process{Name: name, Reactors: 2}
		switch name {
		case "mosquitto":
			if _, err := exec.LookPath("/usr/sbin/mosquitto"); err != nil {
				fmt.Fprintf(out, "mosquitto is left out: %v (Debian: apt-get install mosquitto)\n", err)
				continue
			}
			s.Program = filepath.Join(dir, name)
			err = os.WriteFile(s.Program, script, 0o700)
		case "control":
			s.Program, err = b.Go("topics/bare")
		default:
			s.Program, err = b.Go("topics/" + name)
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
