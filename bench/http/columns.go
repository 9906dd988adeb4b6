package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/nginx"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// all are the servers, in the order of the table, in which servers that are compared are near each other.
const all = "daimon,fasthttp,control,net/http,nginx,fasthttp+,net/http+"

// named are measured only when they are named: for the cost of an access log, and for a fixed rate.
const named = "daimon-control,daimon-log,daimon-single,garbage,epoll,epoll-control"

// ratio is a ratio of the table, if both its servers are in it.
type ratio struct{ of, to string }

var ratios = []ratio{
	{"daimon", "fasthttp"}, {"control", "fasthttp"}, {"daimon", "net/http"}, {"daimon", "nginx"},
	{"daimon-control", "daimon"}, {"daimon-log", "daimon"}, {"daimon-single", "daimon"},
	{"daimon", "epoll"}, {"garbage", "epoll"}, {"epoll-control", "epoll"},
}

// limit is for a ratio, with so many requests at a time.
type limit struct {
	ratio
	depth int
	most  float64
}

var limits = []limit{
	{ratio{"daimon", "fasthttp"}, 1, 0.75},
	{ratio{"daimon", "net/http"}, 1, 0.40},
	{ratio{"daimon", "fasthttp"}, 16, 0.45},
	{ratio{"daimon", "nginx"}, 16, 0.15},
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
	case "daimon", "daimon-control", "daimon-log", "daimon-single":
		if s.Program = o.Server; o.Server == "" {
			s.Program, err = b.Daimon("examples/httpd")
		}
		switch s.Name {
		case "daimon-log":
			s.Flags = []string{"-access-log", filepath.Join(b.To, "access.log")}
		case "daimon-single":
			s.Flags = []string{"-engine", "epoll"}
		}
	case "garbage":
		s.Flags = []string{"-http"}
		s.Program, err = b.Go("echo/garbage")
	case "epoll", "epoll-control":
		s.Program, err = b.C("http/c/epoll.c")
	case "nginx":
		err = nginx.Prepare(b, s, o.Nginx)
	case "fasthttp", "control":
		s.Program, err = b.Go("http/fasthttp")
	case "net/http":
		s.Program, err = b.Go("http/nethttp")
	case "fasthttp+":
		err = free(b, s, "http/fasthttp")
	case "net/http+":
		err = free(b, s, "http/nethttp")
	default:
		err = fmt.Errorf("-servers takes some of %s,%s", all, named)
	}
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
		of, to := slices.Index(t.Columns, r.of), slices.Index(t.Columns, r.to)
		if of >= 0 && to >= 0 {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: of, To: to, Limit: o.limit(depth, r)})
		}
	}
	return t
}

func (o Options) limit(depth int, r ratio) float64 {
	if o.Max != 0 {
		if r == (ratio{"daimon", "fasthttp"}) {
			return o.Max
		}
		return 0
	}
	for _, l := range limits {
		if l.ratio == r && l.depth == depth {
			return l.most
		}
	}
	return 0
}
