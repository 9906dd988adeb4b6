// Command udp measures the CPU time that a server spends on a datagram: an echo of 100 bytes to 64 peers, and an answer of DNS.
// Daimon stands beside a C loop, package net and gnet, or beside miekg/dns and nsd, in interleaved pairs, with a second C loop or a
// second miekg/dns as the control. See ../README.md.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Pairs, Packets, Peers, Size int
	Rows                        string
	Apart                       bool
}

func main() {
	var o Options
	flag.IntVar(&o.Pairs, "pairs", 15, "how often each server is measured")
	flag.IntVar(&o.Packets, "packets", 200000, "datagrams of a run")
	flag.IntVar(&o.Peers, "peers", 64, "peers, each with one datagram under way")
	flag.IntVar(&o.Size, "size", 100, "bytes of an echoed datagram")
	flag.StringVar(&o.Rows, "rows", strings.Join(names, ","), "which rows are measured, in this order")
	flag.BoolVar(&o.Apart, "apart", false, "give the load generator a CPU that no server uses")
	flag.Parse()
	valid := min(o.Pairs, o.Packets, o.Peers, o.Size) >= 1
	command.Main("bench/udp", valid, "numbers start at 1", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

var names = []string{"echo", "dns"}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names)
	if err != nil {
		return err
	}
	b, err := build.Temporary()
	if err != nil {
		return err
	}
	defer b.Remove()
	clients := load.Generator{Conns: o.Peers, Flags: []string{"-udp"}}
	if clients.Program, err = load.Build(b); err == nil {
		clients.CPU, err = load.CPU(1, o.Apart)
	}
	if err != nil {
		return err
	}
	for _, i := range chosen {
		if err := o.row(ctx, out, b, names[i], clients); err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return nil
}

// row measures the servers of a row. All are divided by the first one but the control.
func (o Options) row(ctx context.Context, out io.Writer, b build.Builder, name string, clients load.Generator) error {
	servers, talk, err := o.echo(b)
	if name == "dns" {
		servers, talk, err = dns(b)
	}
	if err != nil {
		return err
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	t := pairs.Table{}
	for i, s := range servers {
		t.Columns = append(t.Columns, s.Name)
		if i != 1 {
			t.Ratios = append(t.Ratios, pairs.Ratio{Of: i, To: 1})
		}
	}
	run := func(i int) (float64, error) {
		cost, err := clients.Run(ctx, servers[i], talk, o.Packets)
		return cost.CPU, err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := run(i); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s: server CPU per datagram, ns; peers %d, datagrams %d, load on CPU %d\n", name, o.Peers, o.Packets, clients.CPU)
	_, err = t.Measure(out, o.Pairs, run)
	return err
}

// process is a server with one reactor.
func process(name, program string, flags ...string) *server.Process {
	return &server.Process{Name: name, Program: program, Reactors: 1, Flags: flags, UDP: true}
}

func (o Options) echo(b build.Builder) (all []*server.Process, talk load.Talk, err error) {
	loop, err := b.C("udp/c/udp.c")
	if err != nil {
		return nil, talk, err
	}
	var of [3]string
	for i, dir := range []string{"udp/daimon", "udp/plain", "echo/gnet"} {
		if of[i], err = b.Go(dir); err != nil {
			return nil, talk, err
		}
	}
	return []*server.Process{process("daimon", of[0]), process("loop", loop), process("control", loop), process("conversations", of[0], "-peers"),
		process("net", of[1]), process("gnet", of[2], "-network", "udp")}, load.Echo(o.Size), nil
}

// zoneFile is served by all.
const zoneFile = `$ORIGIN example.com.
$TTL 300
@   IN SOA ns hostmaster 1 7200 3600 1209600 300
@   IN NS ns
ns  IN A 192.0.2.53
web IN A 192.0.2.80
`

func dns(b build.Builder) (all []*server.Process, talk load.Talk, err error) {
	path := filepath.Join(b.To, "example.zone")
	if err := os.WriteFile(path, []byte(zoneFile), 0o644); err != nil {
		return nil, talk, err
	}
	ours, err := b.Daimon("examples/dns")
	if err != nil {
		return nil, talk, err
	}
	of, err := b.Go("udp/miekg")
	if err != nil {
		return nil, talk, err
	}
	nsd, err := b.Go("udp/nsd")
	if err != nil {
		return nil, talk, err
	}
	other := process("nsd", nsd, "-zone", path, "-dir", b.To)
	other.Workers = nsdChildren
	all = []*server.Process{process("daimon", ours, "-zone", path), process("miekg", of, "-zone", path),
		process("control", of, "-zone", path), other}
	return all, question(), nil
}

// nsdChildren are the processes that nsd has beside its first one, with one server.
const nsdChildren = 2

// question is a query for one record. Of the answer the length is compared: 16 bytes more.
func question() load.Talk {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName("web.example.com."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	query, err := m.Pack()
	if err != nil {
		panic(err)
	}
	answer := binary.BigEndian.AppendUint16(query, 0xc00c)
	answer = append(answer, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 80)
	return load.Talk{Say: query, Hear: answer, Phases: 1, Period: len(answer), Hole: 2, HoleLen: 10}
}
