package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/nginx"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/bench/nethttp/site"
)

// columns are the servers. Those that are compared are near each other.
var columns = []string{"nginx", "fib", "native", "native-other", "net/http", "control", "nethttp", "inline", "grpc-go"}

// row is a request, and what of it is measured.
type row struct {
	name, path     string
	body           string   // of the request; "": it is a GET
	fields         []string // of the request
	length         int      // of the answer's content
	conns, streams int
	requests       int // of a run; 0: memory is measured, and not CPU time
	without        string
	limits         map[string]float64 // of medians: "native/nginx"
}

var (
	gets   = map[string]float64{"native/net/http": 0.35, "native/nginx": 1, "native/fib": 0.75}
	bodies = map[string]float64{"native/net/http": 0.6}
	calls  = map[string]float64{"nethttp/net/http": 1}
	grpc   = []string{"-H", "content-type: application/grpc", "-H", "te: trailers"}
	// message is "Hello, World!" as a google.protobuf.StringValue, in a frame of gRPC.
	message = "\x00\x00\x00\x00\x0f\x0a\x0d" + site.Hello
)

// rows are measured without TLS, and with it if they are called so.
var rows = withTLS(
	row{name: "get", path: "/small", length: len(site.Hello), conns: 100, streams: 10, requests: 100000, without: "grpc-go", limits: gets},
	row{name: "upload", path: "/discard", body: strings.Repeat("x", 64<<10), length: len(site.Hello), conns: 10, streams: 10, requests: 4000,
		without: "grpc-go nginx", limits: bodies},
	row{name: "download", path: "/large", length: site.Large, conns: 10, streams: 10, requests: 600, without: "grpc-go nginx", limits: bodies},
	row{name: "rpc", path: site.Say, body: message, fields: grpc, length: len(message), conns: 100, streams: 10, requests: 30000,
		without: "native native-other nginx fib", limits: calls},
	row{name: "idle", path: "/small", conns: 5000, streams: 1, without: "grpc-go inline"},
	row{name: "waiting", path: "/wait", conns: 100, streams: 100, without: "grpc-go inline nginx fib"},
)

func withTLS(plain ...row) (all []row) {
	for _, r := range plain {
		all = append(all, r)
		r.name += "-tls"
		r.without += " grpc-go" // it has no certificate
		all = append(all, r)
	}
	return all
}

func (r row) tls() bool { return strings.HasSuffix(r.name, "-tls") }

func (r row) scheme() string {
	if r.tls() {
		return "https"
	}
	return "http"
}

func names() (all []string) {
	for _, r := range rows {
		all = append(all, r.name)
	}
	return all
}

// stacks are those of nethttp/server.
var stacks = map[string]string{
	"net/http": "std", "control": "std", "native": "native", "native-other": "native", "nethttp": "daimon", "inline": "inline", "grpc-go": "grpc",
}

// servers returns the servers of a row, compiled.
func (m *measurement) servers(r row) (all []*server.Process, err error) {
	for _, name := range columns {
		if !slices.Contains(strings.Split(m.Servers, ","), name) || slices.Contains(strings.Fields(r.without), name) ||
			name == "native-other" && m.Server == "" {
			continue
		}
		s := &server.Process{Name: name, Reactors: 1}
		if r.tls() {
			s.Flags = m.identity.Flags()
		}
		switch name {
		case "nginx":
			s.Flags = append(s.Flags, "-http2")
			err = nginx.Prepare(m.build, s, "")
		case "fib":
			s.Program, err = m.build.Module("http2/testdata/fib", "go1.27.3")
		default:
			s.Flags = append(s.Flags, "-stack", stacks[name])
			if s.Program = m.Server; name != "native-other" {
				s.Program, err = m.build.Go("nethttp/server")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// table has the ratios that have a limit, and those of the others to net/http.
func (r row) table(servers []*server.Process) (t pairs.Table) {
	for _, s := range servers {
		t.Columns = append(t.Columns, s.Name)
	}
	for _, to := range []string{"nginx", "fib", "native-other", "grpc-go", "net/http"} {
		for of, name := range t.Columns {
			limit := r.limits[name+"/"+to]
			ours := name == "native" || name == "nethttp" && to == "grpc-go"
			if i := slices.Index(t.Columns, to); i >= 0 && i != of && (ours || to == "net/http") {
				t.Ratios = append(t.Ratios, pairs.Ratio{Of: of, To: i, Limit: limit})
			}
		}
	}
	return t
}
