// Command replace counts what clients see when a server is replaced while it runs: by a newer binary, or by a process with
// another configuration. See ../../docs/replacing.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/replace/site"
	"github.com/daimon-go/daimon/internal/testing/traffic"
)

// Options are the flags.
type Options struct {
	Systems      string
	Replacements int           // of each system
	Every        time.Duration // between two of them
	Reactors     int
	Resting      int           // clients that rest for a short time, and as many for a long one
	RoundTrip    time.Duration // of the network between the clients and the server
}

func main() {
	var o Options
	flag.StringVar(&o.Systems, "systems", strings.Join(names(), ","), "which `systems` are measured")
	flag.IntVar(&o.Replacements, "n", 10, "how often each is replaced")
	flag.DurationVar(&o.Every, "every", 2*time.Second, "the time between two replacements")
	flag.IntVar(&o.Reactors, "reactors", 2, "Daimon's reactors, nginx's workers, HAProxy's threads, GOMAXPROCS")
	flag.IntVar(&o.Resting, "resting", 100, "the `number` of clients that rest half a second between two requests, and the number of clients that rest 8 s")
	flag.DurationVar(&o.RoundTrip, "rtt", 10*time.Millisecond, "the round trip of the network that clients act as if they had")
	flag.Parse()
	valid := o.Replacements > 0 && o.Every > 0 && o.Reactors > 0 && o.Resting >= 0 && o.RoundTrip >= 0
	command.Main("bench/replace", valid, "numbers must be above 0", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run prints a row for each system, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("systems", o.Systems, names())
	if err != nil {
		return err
	}
	builder, err := build.Temporary()
	if err != nil {
		return err
	}
	defer builder.Remove()
	backend, stop, err := startBackend()
	if err != nil {
		return err
	}
	defer stop()
	var rows []row
	for _, i := range chosen {
		s := systems[i]
		h := &host{Options: o, dir: builder.To, builder: builder, backend: backend}
		r, err := h.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, r)
	}
	printTable(out, o, rows)
	return nil
}

// startBackend starts the server behind proxies, in this process. It is not replaced.
func startBackend() (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	backend := &http.Server{Handler: site.Handler()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = backend.Serve(l) // it returns when it is closed
	}()
	return l.Addr().String(), func() {
		_ = backend.Close()
		<-served
	}, nil
}

// row is what the clients of a system have seen.
type row struct {
	system
	load *traffic.Load
}

// measure starts a system, and replaces it again and again under load.
func (h *host) measure(ctx context.Context, s system) (r row, err error) {
	if err := h.open(ctx); err != nil {
		return r, err
	}
	defer h.close()
	replace, err := s.start(h)
	if err != nil {
		return r, h.explain(err)
	}
	r = row{s, &traffic.Load{Addr: h.addr}}
	defer r.load.Start(h.clients()...)()
	for range h.Replacements {
		if err := h.pause(h.Every); err != nil {
			return r, err
		}
		if err := replace(); err != nil {
			return r, h.explain(err)
		}
	}
	return r, h.pause(h.Every)
}

// clients returns the clients that each system gets.
func (h *host) clients() []traffic.Client {
	const short, slow, stream = "/", "/slow?for=100ms", "/stream?lines=10"
	var all []traffic.Client
	add := func(n int, c traffic.Client) {
		if !c.Fresh {
			c.Blind = h.RoundTrip
		}
		all = append(all, slices.Repeat([]traffic.Client{c}, n)...)
	}
	const busy = 2 * time.Millisecond
	for _, fresh := range []bool{false, true} {
		add(8, traffic.Client{Path: short, Fresh: fresh, Rest: busy})
		add(4, traffic.Client{Path: slow, Fresh: fresh, Rest: busy})
		add(4, traffic.Client{Path: stream, Fresh: fresh, Rest: busy})
	}
	add(h.Resting, traffic.Client{Path: short, Rest: time.Second / 2})
	add(h.Resting, traffic.Client{Path: short, Rest: 8 * time.Second})
	return all
}

func printTable(out io.Writer, o Options, rows []row) {
	fmt.Fprintf(out, "%d replacements each, every %v; %d reactors, workers or threads; %d and %d clients at rest; round trip %v\n\n",
		o.Replacements, o.Every, o.Reactors, o.Resting, o.Resting, o.RoundTrip)
	fmt.Fprint(out, "| system | replaced by | requests | connections | closed at rest |")
	for k := range traffic.Kind(traffic.Kinds) {
		fmt.Fprintf(out, " %v |", k)
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat("---|", 5+traffic.Kinds))
	for _, r := range rows {
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d |", r.name, r.how, r.load.Served(), r.load.Connections(), r.load.AtRest())
		var count [traffic.Kinds]int
		for _, f := range r.load.Failures() {
			count[f.Kind]++
		}
		for _, n := range count {
			fmt.Fprintf(out, " %d |", n)
		}
		fmt.Fprintln(out)
	}
}
