package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/server"
)

// Load says what is sent to every server.
type Load struct {
	Program               string // c/load.c, compiled
	Conns, Messages, Size int
	CPU                   int // where the load generator runs; -1: anywhere
}

// Cost is what one message cost, in ns: of the server's CPU, and by the clock on the wall.
type Cost struct{ CPU, Wall float64 }

// run makes new connections to s, has each echo one message, then measures l.Messages more. So neither
// accepting nor closing is measured, and with several reactors the kernel deals the connections anew
// for every run.
func (l Load) run(ctx context.Context, s *server.Process) (Cost, error) {
	cmd := exec.CommandContext(ctx, l.Program,
		strconv.Itoa(s.Port), strconv.Itoa(l.Conns), strconv.Itoa(l.Size), strconv.Itoa(l.CPU))
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
	cost, err := l.measure(s, in, bufio.NewReader(out))
	in.Close()
	if end := cmd.Wait(); end != nil {
		err = fmt.Errorf("%w: %s", end, complaint.String()) // the cause; the broken pipe is its effect
	}
	if err != nil {
		return Cost{}, fmt.Errorf("load on %s: %w", s.Name, err)
	}
	return cost, nil
}

// measure talks to the load generator: both readings are taken while it waits for a line, so the
// server has nothing to do at either.
func (l Load) measure(s *server.Process, in io.Writer, out *bufio.Reader) (Cost, error) {
	if _, err := out.ReadString('\n'); err != nil { // "ready"
		return Cost{}, err
	}
	before, err := s.CPU()
	if err != nil {
		return Cost{}, err
	}
	fmt.Fprintln(in, l.Messages)
	line, err := out.ReadString('\n')
	if err != nil {
		return Cost{}, err
	}
	wall, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return Cost{}, err
	}
	after, err := s.CPU()
	n := float64(l.Messages)
	return Cost{CPU: float64(after-before) / n, Wall: float64(wall) / n}, err
}

// loadCPU says where the load generator runs. Beside the only reactor, on its CPU, the two take turns:
// the load sends what it has and sleeps, the server answers all of it and sleeps. So the server finds
// the same number of messages at every poll, whoever else uses the machine (README: Steadiness). Apart,
// on the first CPU that the reactors leave free, they race. Several reactors have no one CPU to share.
func loadCPU(reactors int, apart bool) (int, error) {
	cpus, err := allowedCPUs()
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

func allowedCPUs() (cpus []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
