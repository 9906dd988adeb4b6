// Command attacks measures what attacks by HTTP/2 do to honest clients of the same server: the latencies of their GET requests
// alone, beside ordinary load, and beside each attack, in interleaved runs, on package httpd and on net/http. See ../README.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// options are the flags. The program starts itself, with -as and -addr, for the clients.
type options struct {
	attacks, server, as, addr string
	pairs, conns, bytes, rate int
	time                      time.Duration
	limit                     float64
}

func main() {
	var o options
	flag.StringVar(&o.attacks, "attacks", strings.Join(names, ","), "which attacks are measured")
	flag.StringVar(&o.server, "server", "", "measure this `binary`, of nethttp/server in another tree, in place of that of this one")
	flag.IntVar(&o.pairs, "pairs", 5, "how often each is measured")
	flag.IntVar(&o.conns, "conns", 8, "connections of the attackers")
	flag.IntVar(&o.bytes, "bytes", 1_000_000, "bytes that all attackers send in a second")
	flag.IntVar(&o.rate, "rate", 1000, "requests that all honest clients send in a second")
	flag.DurationVar(&o.time, "time", 2*time.Second, "how long a run is")
	flag.Float64Var(&o.limit, "limit", 0, "fail when a p99 of native is above so many times that beside nothing; 0: never")
	flag.StringVar(&o.as, "as", "", "only be these `clients` of the server at -addr: honest, or the name of an attack")
	flag.StringVar(&o.addr, "addr", "", "see -as")
	flag.Parse()
	valid := min(o.pairs, o.conns, o.bytes, o.rate) >= 1 && o.time > 0
	command.Main("bench/attacks", valid, "numbers are above 0", func(ctx context.Context) error {
		switch o.as {
		case "":
			return o.run(ctx, os.Stdout)
		case "honest":
			return honest(o.addr, o.rate, o.time)
		}
		fmt.Println("begun")
		for range o.conns {
			go attacks[o.as].run(o.addr, o.bytes/o.conns)
		}
		<-ctx.Done()
		return nil
	})
}

// figures are those of a run: the median and the 99th percentile of the latencies in µs, and the server's CPU time in percent.
type figures [3]float64

func (o options) run(ctx context.Context, out io.Writer) error {
	chosen, err := command.Choose("attacks", o.attacks, names)
	if err != nil {
		return err
	}
	b, err := build.Temporary()
	if err != nil {
		return err
	}
	defer b.Remove()
	if o.server == "" {
		if o.server, err = b.Go("nethttp/server"); err != nil {
			return err
		}
	}
	servers := []*server.Process{
		{Name: "native", Program: o.server, Reactors: 1, Flags: []string{"-stack", "native"}},
		{Name: "net/http", Program: o.server, Reactors: 1, Flags: []string{"-stack", "std"}},
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	on, err := load.CPU(1, true)
	if err != nil {
		return err
	}
	all := map[string]runs{}
	besides := []string{"nothing", "gets"}
	for _, i := range chosen {
		besides = append(besides, names[i])
	}
	for range o.pairs {
		for _, name := range besides {
			for _, s := range servers {
				f, err := o.beside(ctx, s, name, on)
				if err != nil {
					return fmt.Errorf("%s beside %s: %w", s.Name, name, err)
				}
				all[s.Name+name] = append(all[s.Name+name], f)
			}
		}
	}
	fmt.Fprintf(out, "latency of GET requests, µs; medians of %d runs\n%-10s%-15s%9s%9s%20s%20s%6s\n",
		o.pairs, "server", "beside", "p50", "p99", "p99/nothing", "p99/gets", "CPU")
	for _, s := range servers {
		for _, name := range besides {
			of := all[s.Name+name]
			alone, gets := of.spread(all[s.Name+"nothing"], 1), of.spread(all[s.Name+"gets"], 1)
			fmt.Fprintf(out, "%-10s%-15s%9.0f%9.0f%20s%20s%5.0f%%\n", s.Name, name, of.spread(nil, 0).Median, of.spread(nil, 1).Median,
				text(alone), text(gets), of.spread(nil, 2).Median)
			if o.limit > 0 && s.Name == "native" && alone.Median > o.limit {
				err = errors.Join(err, fmt.Errorf("beside %s the p99 is %.2f times that beside nothing", name, alone.Median))
			}
		}
	}
	return err
}

// runs are the figures of one kind of runs.
type runs []figures

// spread is that of a figure or, if there is something to compare it with, of its ratios in each pair.
func (r runs) spread(to runs, which int) pairs.Spread {
	var v []float64
	for i, f := range r {
		if v = append(v, f[which]); to != nil {
			v[i] /= to[i][which]
		}
	}
	return pairs.Of(v)
}

func text(s pairs.Spread) string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max) }

// settling is how long attackers run before something is measured.
const settling = 300 * time.Millisecond

// beside is one run. All clients are on the CPU on, where the honest ones come first.
func (o options) beside(ctx context.Context, s *server.Process, name string, on int) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	attack := exec.CommandContext(ctx, "nice", "-n", "19", self, "-as", name, "-addr", s.Addr(), "-conns", strconv.Itoa(o.conns),
		"-bytes", strconv.Itoa(o.bytes))
	attack.Stderr, attack.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begun, err := attack.StdoutPipe()
	if err == nil {
		err = cpu.On([]int{on}, attack.Start)
	}
	if err != nil {
		return f, err
	}
	defer func() {
		_ = attack.Process.Signal(syscall.SIGTERM) // it has ended if this fails
		err = errors.Join(err, attack.Wait())
	}()
	if _, err := begun.Read(make([]byte, 1)); err != nil { // from then on it takes the signal
		return f, err
	}
	time.Sleep(settling)
	var said bytes.Buffer
	clients := exec.CommandContext(ctx, self, "-as", "honest", "-addr", s.Addr(), "-rate", strconv.Itoa(o.rate),
		"-time", o.time.String())
	clients.Stdout, clients.Stderr = &said, os.Stderr
	before, err := s.CPU()
	err = errors.Join(err, cpu.On([]int{on}, clients.Run))
	after, failure := s.CPU()
	f[2] = 100 * (after - before).Seconds() / o.time.Seconds()
	if err = errors.Join(err, failure); err == nil {
		_, err = fmt.Fscan(&said, &f[0], &f[1])
	}
	return f, err
}
