package main

import (
	"cmp"
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
const all = "daimon,fasthttp,control,nethttp-inline,nethttp,net/http,net/http-control,nginx,fasthttp+,nethttp+,net/http+"

// logging are servers for the cost of an access log. They are measured only when they are named.
const logging = "daimon-control,daimon-log"

// handlers are the servers of all with package handler.
const handlers = "nethttp-inline,nethttp,net/http,net/http-control,nethttp+,net/http+"

// ratio is a ratio of the table, if both its servers are in it.
type ratio struct{ of, to string }

// ratios are of CPU.
var ratios = []ratio{
	{"daimon", "fasthttp"}, {"control", "fasthttp"}, {"daimon", "net/http"}, {"daimon", "nginx"},
	{"nethttp-inline", "net/http"}, {"nethttp", "net/http"}, {"net/http-control", "net/http"}, {"nethttp+", "net/http+"},
	{"daimon-control", "daimon"}, {"daimon-log", "daimon"},
}

// idleRatios are of memory.
var idleRatios = append(ratios[:len(ratios):len(ratios)], ratio{"nethttp", "daimon"})

// limit is for a ratio in runs of one kind.
type limit struct {
	ratio
	exchange     string // idle: memory
	conns, depth int    // 0: any
	most         float64
}

const idle = "idle"

var limits = []limit{
	{ratio{"daimon", "fasthttp"}, get, 0, 1, 0.75},
	{ratio{"daimon", "net/http"}, get, 0, 1, 0.40},
	{ratio{"daimon", "fasthttp"}, get, 0, 16, 0.45},
	{ratio{"daimon", "nginx"}, get, 0, 16, 0.15},
	{ratio{"nethttp", "net/http"}, get, 100, 1, 0.75},
	{ratio{"nethttp", "net/http"}, get, 1, 1, 1.20},
	{ratio{"nethttp-inline", "net/http"}, get, 0, 1, 0.50},
	{ratio{"nethttp", "net/http"}, download, 0, 1, 1.10},
	{ratio{"nethttp", "net/http"}, upload, 0, 1, 1.10},
	{ratio{"nethttp", "daimon"}, idle, 0, 0, 1.10},
}

// columns compiles the servers that are asked for. Without nginx the others can be measured, but not judged.
func (o Options) columns(out io.Writer, b build.Builder) (servers []*server.Process, err error) {
	names := strings.Split(cmp.Or(o.Servers, o.able()), ",")
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

// able returns the servers that know the exchange.
func (o Options) able() string {
	if o.what() == get {
		return all
	}
	return handlers
}

func (o Options) compile(b build.Builder, s *server.Process) (err error) {
	switch s.Name {
	case "daimon", "daimon-control", "daimon-log":
		if s.Program = o.Server; o.Server == "" {
			s.Program, err = b.Daimon("examples/httpd")
		}
		if s.Name == "daimon-log" {
			s.Flags = []string{"-access-log", filepath.Join(b.To, "access.log")}
		}
	case "nginx":
		err = nginx.Prepare(b, s, o.Nginx)
	case "fasthttp", "control":
		s.Program, err = b.Go("http/fasthttp")
	case "net/http", "net/http-control":
		s.Program, err = b.Go("http/nethttp")
	case "nethttp":
		s.Program, err = b.Go("http/adapter")
	case "nethttp-inline":
		s.Flags = []string{"-inline"}
		s.Program, err = b.Go("http/adapter")
	case "nethttp+":
		err = free(b, s, "http/adapter")
	case "fasthttp+":
		err = free(b, s, "http/fasthttp")
	case "net/http+":
		err = free(b, s, "http/nethttp")
	default:
		err = fmt.Errorf("-servers takes some of %s,%s", all, logging)
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
	list := ratios
	if o.Idle > 0 {
		list = idleRatios
	}
	for _, r := range list {
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
	kind := o.what()
	if o.Idle > 0 {
		kind = idle
	}
	for _, l := range limits {
		if l.ratio == r && l.exchange == kind && (l.conns == 0 || l.conns == o.Conns) && (l.depth == 0 || l.depth == depth) {
			return l.most
		}
	}
	return 0
}
