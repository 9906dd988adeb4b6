// Command websocket measures servers of WebSocket: Daimon's against github.com/gorilla/websocket, github.com/coder/websocket,
// github.com/lxzan/gws and github.com/gobwas/ws, in interleaved pairs, with a second server as the control. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/load"
)

// Options are the flags.
type Options struct {
	Rows, Servers               string
	Server                      string // a binary
	Pairs, Conns, Messages      int
	Size, Reactors              int
	Text, Apart                 bool
	Idle                        int
	Receivers, Broadcasts, Long int
	Burst                       int
	Limits                      bool
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names, ","), "which rows are measured, in this order")
	flag.StringVar(&o.Servers, "servers", "", "which servers of the rows are measured (default: all)")
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr and -reactors) as daimon, in place of examples/websocket-echo")
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&o.Conns, "conns", 1000, "echo: connections, each with one message under way")
	flag.IntVar(&o.Messages, "messages", 200000, "echo: messages of a run, over all connections")
	flag.IntVar(&o.Size, "size", 64, "echo, idle: bytes of a message")
	flag.BoolVar(&o.Text, "text", false, "echo, idle: the messages are texts, which some servers check")
	flag.IntVar(&o.Reactors, "reactors", 1, "echo, idle: reactors, GOMAXPROCS; the row broadcast has two")
	flag.BoolVar(&o.Apart, "apart", false, "echo: give the load generator a CPU that no reactor uses")
	flag.IntVar(&o.Idle, "idle", 10000, "idle: connections")
	flag.IntVar(&o.Receivers, "receivers", 10000, "broadcast: connections, which all get every message")
	flag.IntVar(&o.Broadcasts, "broadcasts", 20, "broadcast: messages of a run")
	flag.IntVar(&o.Long, "long", 100, "broadcast: bytes of a message")
	flag.IntVar(&o.Burst, "burst", 1, "broadcast: messages that are posted back to back; the next when all connections have them")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.Parse()
	valid := min(o.Pairs, o.Conns, o.Messages, o.Size, o.Reactors, o.Idle, o.Receivers, o.Broadcasts, o.Long, o.Burst) >= 1 &&
		max(o.Size, o.Long) <= most
	command.Main("bench/websocket", valid, fmt.Sprintf("numbers start at 1, and messages have up to %d bytes", most),
		func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names)
	if err != nil {
		return err
	}
	if o.Servers != "" {
		if _, err := command.Choose("servers", o.Servers, servers); err != nil {
			return err
		}
	}
	m := measurement{Options: o, out: out}
	if m.build, err = build.Temporary(); err != nil {
		return err
	}
	defer m.build.Remove()
	if m.load, err = load.Build(m.build); err != nil {
		return err
	}
	var above []error
	for _, i := range chosen {
		err := m.row(ctx, rows[i])
		var limit aboveLimit
		if !errors.As(err, &limit) && err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		above = append(above, err)
	}
	return errors.Join(above...)
}
