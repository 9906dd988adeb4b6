package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
)

const (
	pace = 50 * time.Millisecond // between two requests of an established connection
	calm = 10 * time.Millisecond // the p99 that is still good
)

// flood measures the latency of requests on established connections, without and with a flood of full handshakes, on a
// server with a scheduler on every CPU.
func (m *measurement) flood(ctx context.Context) error {
	cpus, err := cpu.Allowed()
	if err != nil {
		return err
	}
	all := *m
	all.Reactors = len(cpus)
	servers, err := all.servers("flood")
	if err != nil {
		return err
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(m.out, "flood: µs for a request on one of %d connections that are established, one every %v on each; reactors %d\n",
		m.Conns, pace, all.Reactors)
	fmt.Fprintf(m.out, "%-5s%10s%8s%8s%8s%10s%8s%8s%14s%16s\n",
		"pair", "server", "calm:50", "99", "max", "flood:50", "99", "max", "handshakes/s", "CPU/handshake")
	var worst float64
	for pair := range m.Pairs {
		for i := range servers {
			s := servers[(i+pair)%len(servers)]
			p99, err := m.flooded(ctx, pair, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			if s.Name == "daimon" {
				worst = max(worst, p99)
			}
		}
	}
	if limit := float64(calm.Microseconds()); m.Limits && worst > limit {
		return aboveLimit{fmt.Errorf("flood: a p99 of %.0f µs is above %.0f", worst, limit)}
	}
	return nil
}

// flooded prints a line.
func (m *measurement) flooded(ctx context.Context, pair int, s *server.Process) (p99 float64, err error) {
	talk, err := m.talk("http", s)
	if err != nil {
		return 0, err
	}
	probe, err := m.start(ctx, s, talk, m.Conns, "-every", pace.String())
	if err != nil {
		return 0, err
	}
	defer probe.stop()
	probes := max(m.Conns, m.Conns*int(m.Flood/pace))
	before, err := probe.measure(probes)
	if err != nil {
		return 0, err
	}
	flood, err := m.start(ctx, s, load.Talk{}, m.Conns, "-handshakes", "full", "-nice", "19")
	if err != nil {
		return 0, err
	}
	defer flood.stop()
	used, err := s.CPU()
	if err != nil {
		return 0, err
	}
	made := make(chan int)
	end := make(chan struct{})
	go func() { // handshakes, a few at a time, until the probe has its figures
		defer close(made)
		n, lot := 0, 4*m.Conns
		for {
			if _, err := flood.measure(lot); err != nil {
				return
			}
			n += lot
			select {
			case <-end:
				made <- n
				return
			default:
			}
		}
	}()
	start := time.Now()
	during, err := probe.measure(probes)
	close(end)
	n, ok := <-made
	took := time.Since(start)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, fmt.Errorf("the flood ended: %s", flood.complaint.String())
	}
	after, err := s.CPU()
	fmt.Fprintf(m.out, "%-5d%10s%8.0f%8.0f%8.0f%10.0f%8.0f%8.0f%14.0f%16.0f\n", pair+1, s.Name, before[0], before[1], before[2],
		during[0], during[1], during[2], float64(n)/took.Seconds(), float64((after-used).Microseconds())/float64(n))
	return during[1], err
}

// clients is a load generator that runs beside another.
type clients struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	complaint strings.Builder
}

func (m *measurement) start(ctx context.Context, s *server.Process, talk load.Talk, conns int, flags ...string) (*clients, error) {
	c := &clients{}
	arguments := append(flags, "-certificate", m.identity.Certificate, strconv.Itoa(s.Port), strconv.Itoa(conns), "-1")
	c.cmd = exec.CommandContext(ctx, m.load, arguments...)
	c.cmd.Stderr = io.MultiWriter(&c.complaint, os.Stderr)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	load.Teach(c.in, talk)
	if _, err := c.out.ReadString('\n'); err != nil { // "ready"
		c.stop()
		return nil, fmt.Errorf("%w: %s", err, c.complaint.String())
	}
	return c, nil
}

// measure has so many exchanges, and returns the latencies in µs: median, 99th percentile, maximum.
func (c *clients) measure(exchanges int) (latencies [3]float64, err error) {
	fmt.Fprintln(c.in, exchanges)
	line, err := c.out.ReadString('\n')
	if err != nil {
		return latencies, fmt.Errorf("%w: %s", err, c.complaint.String())
	}
	var wall float64
	_, _ = fmt.Sscan(line, &wall, &latencies[0], &latencies[1], &latencies[2]) // a flood has none
	for i := range latencies {
		latencies[i] /= 1000
	}
	return latencies, nil
}

func (c *clients) stop() {
	_ = c.in.Close()
	_ = c.cmd.Wait()
}
