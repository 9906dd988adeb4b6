// Package load puts load on a server from a separate process and measures the cost to the server.
package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Generator is a number of clients.
type Generator struct {
	Program string // c/load.c, compiled, or one that is used as it is
	Flags   []string
	Conns   int
	Rate    int // exchanges that begin in a second, by the clock; 0: each begins when its connection has the last answer
	CPU     int // where it runs; -1: anywhere
}

// Build compiles c/load.c.
func Build(b build.Builder) (program string, err error) { return b.C("internal/load/c/load.c") }

// Cost is what one exchange cost: ns of the server's CPU, ns by the clock on the wall, and how often a thread of the
// server went to sleep. With a rate it has the quantiles of the latency, in ns from when an exchange was to begin.
type Cost struct {
	CPU, Wall, Switches float64
	Latency             [3]float64 // see quantiles
}

// quantiles are the names of those that the load generator reports.
var quantiles = [...]string{"p50", "p99", "p99.9"}

// Run makes new connections to s, with one exchange on each, and then measures further exchanges over all connections. So
// neither accepting nor closing is measured, and with several schedulers the kernel distributes the connections anew in
// every run.
func (g Generator) Run(ctx context.Context, s *server.Process, talk Talk, exchanges int) (Cost, error) {
	flags := slices.Clone(g.Flags)
	if g.Rate > 0 {
		flags = append(flags, "-rate", strconv.Itoa(g.Rate))
	}
	cmd := exec.CommandContext(ctx, g.Program, append(flags, strconv.Itoa(s.Port), strconv.Itoa(g.Conns), strconv.Itoa(g.CPU))...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return Cost{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Cost{}, err
	}
	if err := cmd.Start(); err != nil {
		return Cost{}, err
	}
	Teach(in, talk)
	cost, err := measure(s, in, bufio.NewReader(out), exchanges)
	in.Close()
	if end := cmd.Wait(); end != nil {
		err = fmt.Errorf("%w: %s", end, complaint.String()) // the cause; the broken pipe is its effect
	}
	if err != nil {
		return Cost{}, fmt.Errorf("load on %s: %w", s.Name, err)
	}
	return cost, nil
}

// Teach passes the talk to the load generator. A broken pipe is reported by measure.
func Teach(in io.Writer, t Talk) {
	say, hear := t.lens()
	period, hole := t.Period, t.Hole
	if period == 0 {
		period, hole = hear, hear
	}
	apart := 0
	if t.Apart {
		apart = 1
	}
	fmt.Fprintln(in, say, hear, t.phases(), period, hole, t.HoleLen, apart, len(t.Opening))
	in.Write(t.Say)
	in.Write(t.Hear)
	in.Write(t.Opening)
}

// Learn is the other end of Teach, for a load generator written in Go.
func Learn(in *bufio.Reader) (t Talk, err error) {
	var say, hear, apart, opening int
	if _, err := fmt.Fscanf(in, "%d %d %d %d %d %d %d %d\n", &say, &hear, &t.Phases, &t.Period, &t.Hole, &t.HoleLen, &apart, &opening); err != nil {
		return t, fmt.Errorf("not told what to say: %w", err)
	}
	t.Apart = apart == 1
	t.Say, t.Hear, t.Opening = make([]byte, t.start(t.Phases-1, say)+say), make([]byte, t.start(t.Phases-1, hear)+hear), make([]byte, opening)
	for _, text := range [][]byte{t.Say, t.Hear, t.Opening} {
		if _, err := io.ReadFull(in, text); err != nil {
			return t, err
		}
	}
	if t.HoleLen == 0 {
		t.Period = 0
	}
	return t, nil
}

// measure talks to the load generator: both readings are taken while it waits for a line, so the
// server has nothing to do at either.
func measure(s *server.Process, in io.Writer, out *bufio.Reader, exchanges int) (Cost, error) {
	if _, err := out.ReadString('\n'); err != nil { // "ready"
		return Cost{}, err
	}
	slept := s.Switches()
	before, err := s.CPU()
	if err != nil {
		return Cost{}, err
	}
	fmt.Fprintln(in, exchanges)
	line, err := out.ReadString('\n')
	if err != nil {
		return Cost{}, err
	}
	var wall int
	var late [len(quantiles)]float64
	if n, err := fmt.Sscan(line, &wall, &late[0], &late[1], &late[2]); n != 1 && n != 1+len(late) {
		return Cost{}, err
	}
	after, err := s.CPU()
	n := float64(exchanges)
	return Cost{CPU: float64(after-before) / n, Wall: float64(wall) / n, Switches: float64(s.Switches()-slept) / n, Latency: late}, err
}

// Latencies prints a table for each quantile of the latency. It has the columns and ratios of t, without limits. costs are those
// of each column, in the order of the pairs.
func Latencies(out io.Writer, t pairs.Table, costs [][]Cost) error {
	t.Ratios = slices.Clone(t.Ratios)
	for i := range t.Ratios {
		t.Ratios[i].Limit = 0
	}
	for q, name := range quantiles {
		fmt.Fprintf(out, "%s of the latency, µs\n", name)
		pair := make([]int, len(costs))
		_, err := t.Measure(out, len(costs[0]), func(i int) (float64, error) {
			pair[i]++
			return costs[i][pair[i]-1].Latency[q] / 1000, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CPU returns the CPU for the load generator. On the CPU of the only scheduler the two take turns: the load generator sends
// what it has and sleeps, the server answers all of it and sleeps. So the server finds the same number of messages at every
// poll, whatever else runs on the machine (README: Steadiness). With apart it is the first CPU that the schedulers leave
// free, and the two race. Several schedulers have no CPU in common.
func CPU(reactors int, apart bool) (int, error) {
	cpus, err := cpu.Allowed()
	switch {
	case err != nil:
		return 0, err
	case apart && reactors >= len(cpus):
		return 0, fmt.Errorf("-apart: %d reactors leave none of %d CPUs free", reactors, len(cpus))
	case apart:
		return cpus[reactors], nil
	case reactors == 1:
		return cpus[0], nil
	}
	return -1, nil
}
