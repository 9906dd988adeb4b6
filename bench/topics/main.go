// Command topics measures the CPU time that a broker spends on the delivery of a message: servers of Daimon beside mosquitto,
// mochi-mqtt and bare sends, in interleaved pairs, with one server a second time as the control. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Rows                               string
	Pairs, Subscribers, Messages, Size int
	Limits                             bool
}

func main() {
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names, ","), "which rows are measured, in this order")
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&o.Subscribers, "subscribers", 1000, "subscribers")
	flag.IntVar(&o.Messages, "messages", 200, "messages of a run to each subscriber")
	flag.IntVar(&o.Size, "size", 100, "bytes of a message")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.Parse()
	valid := min(o.Pairs, o.Subscribers, o.Messages) >= 1 && o.Size >= 8
	command.Main("bench/topics", valid, "numbers start at 1, and -size at 8", func(ctx context.Context) error {
		chosen, err := command.Choose("rows", o.Rows, names)
		for _, i := range chosen {
			if err == nil {
				err = o.measure(ctx, os.Stdout, rows[i])
			}
		}
		return err
	})
}

// measure builds, starts, measures, prints, and leaves no process and no file behind.
func (o Options) measure(ctx context.Context, out io.Writer, r row) error {
	b, err := build.Temporary()
	if err != nil {
		return err
	}
	defer b.Remove()
	servers, err := r.compile(out, b)
	if err != nil {
		return err
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	publishers := 1
	if r.apart {
		publishers = o.Subscribers
	}
	var clients []*crowd
	for _, s := range servers {
		c, err := gather(s.Addr(), publishers, o.Subscribers, r.burst, o.Size)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		defer c.close()
		clients = append(clients, c)
	}
	rounds := max(1, o.Messages/r.burst)
	run := func(i int) (float64, error) {
		before, err := servers[i].CPU()
		for n := 0; n < rounds && err == nil; n++ {
			err = clients[i].round(n)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", servers[i].Name, err)
		}
		after, err := servers[i].CPU()
		return float64(after-before) / float64(rounds*r.burst*o.Subscribers), err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := run(i); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s: server CPU per delivery of %d bytes, ns; publishers %d, subscribers %d, messages at a time %d\n",
		r.name, o.Size, publishers, o.Subscribers, r.burst)
	table := r.table(servers)
	medians, err := table.Measure(out, o.Pairs, run)
	if err == nil && o.Limits {
		err = table.Judge(medians)
	}
	return err
}
