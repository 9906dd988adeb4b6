package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// measurement is what all rows have in common.
type measurement struct {
	Options
	out      io.Writer
	dir      string
	build    build.Builder
	identity identity.Files
	on       int     // the CPU of h2load
	above    []error // of medians above their limits
}

func (m *measurement) row(ctx context.Context, r row) error {
	servers, err := m.servers(r)
	if err != nil {
		return err
	}
	run := func(i int) (float64, error) { return m.memory(ctx, r, servers[i]) }
	what := "growth of the server's resident set, bytes"
	if r.requests > 0 {
		if err := os.WriteFile(filepath.Join(m.dir, "body"), []byte(r.body), 0o644); err != nil {
			return err
		}
		stop, err := server.StartAll(ctx, servers)
		defer stop()
		if err != nil {
			return err
		}
		run = func(i int) (float64, error) { return m.cost(ctx, r, servers[i]) }
		for i := range servers { // warms up, counts nowhere
			if _, err := run(i); err != nil {
				return err
			}
		}
		what = fmt.Sprintf("server CPU per request, ns; requests %d, h2load on CPU %d", m.scaled(r.requests), m.on)
	}
	fmt.Fprintf(m.out, "\n%s: %s; conns %d, streams of each %d\n", r.name, what, r.conns, r.streams)
	t := r.table(servers)
	medians, err := t.Measure(m.out, m.Pairs, run)
	if err == nil && m.Limits {
		m.above = append(m.above, t.Judge(medians))
	}
	return err
}

func (m *measurement) scaled(n int) int { return max(1, int(float64(n)*m.Scale)) }

// cost returns the CPU time of a request in ns: what a run costs beyond one with a request for each stream alone. So neither
// handshakes nor accepting nor closing count.
func (m *measurement) cost(ctx context.Context, r row, s *server.Process) (float64, error) {
	few, err := m.load(ctx, r, s, r.conns*r.streams)
	if err != nil {
		return 0, err
	}
	all, err := m.load(ctx, r, s, r.conns*r.streams+m.scaled(r.requests))
	return float64(all-few) / float64(m.scaled(r.requests)), err
}

// load has h2load send n requests, and returns their CPU time. Their answers have the status 200 and the right length.
func (m *measurement) load(ctx context.Context, r row, s *server.Process, n int) (time.Duration, error) {
	flags := append([]string{"-n", strconv.Itoa(n), "-c", strconv.Itoa(r.conns), "-m", strconv.Itoa(r.streams)}, r.fields...)
	if r.body != "" {
		flags = append(flags, "-d", filepath.Join(m.dir, "body"))
	}
	cmd := exec.CommandContext(ctx, "h2load", append(flags, r.scheme()+"://"+s.Addr()+r.path)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	before, err := s.CPU()
	if err != nil {
		return 0, err
	}
	if err := cpu.On([]int{m.on}, cmd.Run); err != nil {
		return 0, fmt.Errorf("h2load on %s: %w\n%s", s.Name, err, said.String())
	}
	after, err := s.CPU()
	for _, want := range []string{fmt.Sprintf(" %d succeeded,", n), fmt.Sprintf("codes: %d 2xx,", n), fmt.Sprintf("(%d) data", n*r.length)} {
		if !bytes.Contains(said.Bytes(), []byte(want)) {
			return 0, fmt.Errorf("h2load on %s does not say %q:\n%s", s.Name, want, said.String())
		}
	}
	return after - before, err
}

// memory returns the growth of the resident set for each stream: of an idle connection, or of a handler that waits.
func (m *measurement) memory(ctx context.Context, r row, s *server.Process) (float64, error) {
	n := m.scaled(r.conns)
	if err := crowd.Fits(n); err != nil {
		return 0, err
	}
	config, err := load.Trust(m.identity.Certificate)
	if err != nil {
		return 0, err
	}
	config.NextProtos = []string{"h2"}
	growth, err := crowd.Each(ctx, s, n, func(c net.Conn) error {
		if r.tls() {
			c = tls.Client(c, config)
		}
		return exchange(c, r)
	})
	return growth / float64(r.streams), err
}

// exchange sends requests, and waits for what is answered of them. The PING after them is answered when all have come.
func exchange(c net.Conn, r row) error {
	var block, out bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", r.path}} {
		_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // no table: all blocks are equal
	}
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, c) // a Buffer takes everything
	_ = f.WriteSettings()
	for i := range r.streams {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	}
	_ = f.WriteSettingsAck()
	_ = f.WritePing(false, [8]byte{})
	if _, err := c.Write(out.Bytes()); err != nil {
		return err
	}
	for heard, answered := false, r.path == "/wait"; !heard || !answered; {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		h := frame.Header()
		heard = heard || h.Type == http2.FramePing
		answered = answered || h.Type == http2.FrameData && h.Flags.Has(http2.FlagDataEndStream)
	}
	return nil
}
