package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// patience is how long the origin may take to hear of an abort.
const patience = 10 * time.Second

// measurement is what all rows have in common.
type measurement struct {
	Options
	out   io.Writer
	build build.Builder
	load  string  // internal/load/c/load.c, which compares every byte of an answer
	above []error // of medians above their limits
}

// runner measures one proxy of a row.
type runner struct {
	row
	*measurement
	ctx    context.Context
	origin *origin
	proxy  *server.Process
	on     int // the CPU of the load generator and of the origin; -1: any
}

func (m *measurement) scaled(n int) int { return max(1, int(float64(n)*m.Scale)) }

// row prints the table of a row.
func (m *measurement) row(ctx context.Context, r row) (err error) {
	on, behind := -1, []int(nil)
	if all, err := cpu.Allowed(); err != nil {
		return err
	} else if r.reactors < len(all) {
		on, behind = all[r.reactors], all[r.reactors:r.reactors+1]
	}
	origin, err := startOrigin(ctx, behind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, origin.stop()) }()
	servers, err := m.servers(r, origin.addr)
	if err != nil {
		return err
	}
	if r.standing {
		stop, err := server.StartAll(ctx, servers)
		defer stop()
		if err != nil {
			return err
		}
	}
	var own []float64 // daimon's figures
	run := func(i int) (float64, error) {
		figure, err := r.run(&runner{row: r, measurement: m, ctx: ctx, origin: origin, proxy: servers[i], on: on})
		if err != nil {
			err = fmt.Errorf("%s: %w", servers[i].Name, err)
		}
		if servers[i].Name == "daimon" {
			own = append(own, figure)
		}
		return figure, err
	}
	fmt.Fprintf(m.out, "\n%s: %s; conns %d, requests of a run %d, streams %d, reactors %d, load and origin on CPU %d (-1: any)\n",
		r.name, r.unit, r.conns, m.scaled(r.exchanges), m.scaled(m.Streams), r.reactors, on)
	for i := 0; i < len(servers) && r.standing; i++ { // warms up
		if _, err := run(i); err != nil {
			return err
		}
	}
	t := r.table(servers)
	medians, err := t.Measure(m.out, m.Pairs, run)
	if err != nil || !m.Limits {
		return err
	}
	if err := t.Judge(medians); err != nil {
		m.above = append(m.above, fmt.Errorf("%s: %w", r.name, err))
	}
	if own != nil && r.most > 0 && pairs.Of(own).Median > r.most {
		m.above = append(m.above, fmt.Errorf("%s: the median of daimon is above %.0f", r.name, r.most))
	}
	return nil
}

// cpu is a row of requests. The first one shows what the others have to be answered.
func (x *runner) cpu() (float64, error) {
	c, err := net.Dial("tcp", x.proxy.Addr())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", x.path, x.proxy.Addr())
	a, err := answer.Ask(c, request, x.content)
	if err != nil {
		return 0, err
	}
	clients := load.Generator{Program: x.load, Conns: x.conns, CPU: x.on}
	cost, err := clients.Run(x.ctx, x.proxy, a.Talk(request, 1), x.scaled(x.exchanges))
	return cost.CPU, err
}

// listen begins a stream, and returns after its first event.
func listen(c net.Conn) error {
	if _, err := io.WriteString(c, "GET /events HTTP/1.1\r\nHost: "+c.RemoteAddr().String()+"\r\n\r\n"); err != nil {
		return err
	}
	var got []byte
	for buf := make([]byte, 4<<10); !bytes.Contains(got, []byte(event)); {
		n, err := c.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			return fmt.Errorf("after %q: %w", got, err)
		}
	}
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("no stream, but %q", got)
	}
	return nil
}

// idle is the memory of a stream.
func (x *runner) idle() (float64, error) {
	n := x.scaled(x.Streams)
	if err := crowd.Fits(2 * n); err != nil { // in this process, and in the proxy
		return 0, err
	}
	return crowd.Each(x.ctx, x.proxy, n, listen)
}

// abort resets the connections of clients one after the other, while others stay.
func (x *runner) abort() (p99 float64, err error) {
	n := x.scaled(x.Streams)
	if err := crowd.Fits(2 * n); err != nil {
		return 0, err
	}
	if err := x.proxy.Start(x.ctx); err != nil {
		return 0, err
	}
	defer x.proxy.Stop()
	conns, err := crowd.Dial(x.ctx, x.proxy.Addr(), n, listen)
	defer crowd.Close(conns)
	if err != nil {
		return 0, err
	}
	var took []time.Duration
	for _, c := range conns[:min(n, x.scaled(x.exchanges))] {
		select {
		case <-x.origin.ended: // of the run before
		default:
		}
		begun := time.Now()
		_ = c.Close()
		select {
		case ended := <-x.origin.ended:
			took = append(took, ended.Sub(begun))
		case <-time.After(patience):
			return 0, fmt.Errorf("the origin has heard nothing for %v", patience)
		}
	}
	slices.Sort(took)
	return float64(took[len(took)*99/100].Microseconds()), nil
}

// reuse counts the connections to the origin, while clients come and go.
func (x *runner) reuse() (float64, error) {
	if err := x.proxy.Start(x.ctx); err != nil {
		return 0, err
	}
	defer x.proxy.Stop()
	const crowds = 10
	before := x.origin.accepted.Load()
	for range crowds {
		if _, err := x.cpu(); err != nil {
			return 0, err
		}
	}
	requests := crowds * (1 + x.conns + x.scaled(x.exchanges))
	return float64(x.origin.accepted.Load()-before) / float64(requests) * 100000, nil
}
