package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/nginx"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// all are the servers, in the order of the table, in which servers that are compared are near each other.
const all = "daimon,fasthttp,control,net/http,nginx,fasthttp+,net/http+"

// ratios are of the table, each where both its servers are in it.
var ratios = [][2]string{{"daimon", "fasthttp"}, {"control", "fasthttp"}, {"daimon", "net/http"}, {"daimon", "nginx"}}

// limits are the limits of daimon divided by the server of that name, by depth.
var limits = map[int]map[string]float64{
	1:  {"fasthttp": 0.75, "net/http": 0.40},
	16: {"fasthttp": 0.45, "nginx": 0.15},
}

// columns compiles the servers that are asked for. Without nginx the others can be measured, but not judged.
func (o Options) columns(out io.Writer, b build.Builder) (servers []*server.Process, err error) {
	names := strings.Split(o.Servers, ",")
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("-servers: %s is named twice", name)
		}
		s := &server.Process{Name: name, Reactors: o.Reactors}
		switch err := o.compile(b, s); {
		case err == nginx.ErrMissing && !o.Limits:
			fmt.Fprintf(out, "nginx is left out: %v\n", err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		default:
			servers = append(servers, s)
		}
	}
	return servers, nil
}

func (o Options) compile(b build.Builder, s *server.Process) (err error) {
	switch s.Name {
	case "daimon":
		if s.Program = o.Server; o.Server == "" {
			s.Program, err = b.Daimon("examples/httpd")
		}
	case "nginx":
		err = nginx.Prepare(b, s, o.Nginx)
	case "fasthttp", "control":
		err = tied(b, s, "http/fasthttp")
	case "net/http":
		err = tied(b, s, "http/nethttp")
	case "fasthttp+":
		err = free(b, s, "http/fasthttp")
	case "net/http+":
		err = free(b, s, "http/nethttp")
	default:
		err = fmt.Errorf("-servers takes some of %s", all)
	}
	return err
}

// tied compiles a server that does not choose its CPUs itself, and ties it to those of Daimon's reactors.
func tied(b build.Builder, s *server.Process, source string) (err error) {
	if err = s.Tie(); err != nil {
		return err
	}
	s.Program, err = b.Go(source)
	return err
}

// free compiles a server that runs with the defaults of the Go runtime.
func free(b build.Builder, s *server.Process, source string) (err error) {
	s.Reactors = 0
	s.Program, err = b.Go(source)
	return err
}

// table is for the servers, with what limits there are for so many requests at a time.
func (o Options) table(servers []*server.Process, depth int) (t pairs.Table) {
	for _, s := range servers {
		t.Columns = append(t.Columns, s.Name)
	}
	for _, r := range ratios {
		of, to := slices.Index(t.Columns, r[0]), slices.Index(t.Columns, r[1])
		if of < 0 || to < 0 {
			continue
		}
		ratio := pairs.Ratio{Of: of, To: to}
		if r[0] == "daimon" {
			ratio.Limit = o.limit(depth, r[1])
		}
		t.Ratios = append(t.Ratios, ratio)
	}
	return t
}

func (o Options) limit(depth int, of string) float64 {
	switch {
	case o.Max == 0:
		return limits[depth][of]
	case of == "fasthttp":
		return o.Max
	}
	return 0
}
