// Command idle measures the idle strategies of Daimon: what a server costs while nothing happens, how
// long it takes to answer the first message after a rest, and what it costs under load. See
// ../../docs/idle.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Server     string        // a binary; "": Daimon's examples/echo, built here
	Strategies string        // values of its flag -idle
	Rounds     int           // how often each strategy is measured
	Rest       time.Duration // how long an idle server is watched
	Scale      float64       // of the numbers of messages
}

func main() {
	var o Options
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr, -reactors and -idle) instead of examples/echo")
	flag.StringVar(&o.Strategies, "strategies", "interrupt,poll,hybrid,busy", "which strategies, as its flag -idle takes them")
	flag.IntVar(&o.Rounds, "rounds", 3, "how often each strategy is measured; the table has medians")
	flag.DurationVar(&o.Rest, "rest", 5*time.Second, "how long an idle server is watched")
	flag.Float64Var(&o.Scale, "scale", 1, "a factor for the numbers of messages")
	flag.Parse()
	valid := o.Rounds >= 1 && o.Rest > 0 && o.Scale > 0
	command.Main("bench/idle", valid, "numbers must be above 0", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures and prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	if o.Server == "" {
		dir, err := os.MkdirTemp("", "bench-idle-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if o.Server, err = compile(dir); err != nil {
			return err
		}
	}
	cpu, err := spareCPU()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "load average %s before\n", loadAverage())
	names := strings.Split(o.Strategies, ",")
	all := map[string][]result{}
	for range o.Rounds { // interleaved: what drifts falls on all alike
		for _, name := range names {
			r, err := o.measure(ctx, name, cpu)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			all[name] = append(all[name], r)
		}
	}
	fmt.Fprintf(out, "load average %s after\n", loadAverage())
	printTable(out, names, all)
	return nil
}

// compile compiles examples/echo.
func compile(dir string) (program string, err error) {
	b, err := build.Into(dir)
	if err != nil {
		return "", err
	}
	return b.Daimon("examples/echo")
}

// result is one measurement of one strategy.
type result struct {
	rest  rest
	loads []cost // of loads
}

// rest is a second of a server with one connection on which nothing happens.
type rest struct {
	cpu     float64 // of one CPU
	wakeups float64 // voluntary context switches of all its threads
}

// measure starts a server of one scheduler with the strategy, and puts it through everything.
func (o Options) measure(ctx context.Context, strategy string, cpu int) (r result, err error) {
	s := &server.Process{Name: "echo -idle " + strategy, Program: o.Server, Reactors: 1, Flags: []string{"-idle", strategy}}
	if err := s.Start(ctx); err != nil {
		return r, err
	}
	defer s.Stop()
	if r.rest, err = o.watch(s); err != nil {
		return r, err
	}
	for _, l := range loads {
		l.messages = max(1, int(float64(l.messages)*o.Scale))
		c, err := l.on(s, cpu)
		if err != nil {
			return r, fmt.Errorf("%s: %w", l.name, err)
		}
		r.loads = append(r.loads, c)
	}
	return r, nil
}

// watch opens a connection, lets it echo a message, and then nothing happens.
func (o Options) watch(s *server.Process) (rest, error) {
	clients, err := dial(s.Port, 1)
	if err != nil {
		return rest{}, err
	}
	defer hangUp(clients)
	if err := clients[0].echo(); err != nil {
		return rest{}, err
	}
	time.Sleep(settling)
	cpu, err := s.CPU()
	if err != nil {
		return rest{}, err
	}
	switches, err := voluntarySwitches(s.PID)
	if err != nil {
		return rest{}, err
	}
	start := time.Now()
	time.Sleep(o.Rest)
	took := time.Since(start).Seconds()
	cpuAfter, err := s.CPU()
	if err != nil {
		return rest{}, err
	}
	switchesAfter, err := voluntarySwitches(s.PID)
	return rest{(cpuAfter - cpu).Seconds() / took, float64(switchesAfter-switches) / took}, err
}

// settling is what a server may take to come to rest after it has started.
const settling = 300 * time.Millisecond

// voluntarySwitches is how often the threads of a process went to sleep, not counting threads that have ended.
func voluntarySwitches(pid int) (n int, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		var of int
		if _, err := fmt.Sscan(rest, &of); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		n += of
	}
	return n, nil
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
