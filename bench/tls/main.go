// Command tls measures what TLS costs a server: Daimon's package secure against a goroutine per connection on crypto/tls,
// net/http and nginx, in interleaved pairs, with a second server as the control. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/identity"
)

// Options are the flags.
type Options struct {
	Rows                              string
	Server, Nginx                     string // binaries
	Pairs, Conns, Exchanges, Reactors int
	Handshakes, Idle                  int
	Flood                             time.Duration
	Limits                            bool
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names, ","), "which rows are measured, in this order")
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr, -reactors, -tls-cert and -tls-key) instead of examples/echo and examples/httpd")
	flag.StringVar(&o.Nginx, "nginx", "", "the `path` of nginx (default: where it is installed)")
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&o.Conns, "conns", 100, "connections; a fifth as many make handshakes at a time")
	flag.IntVar(&o.Exchanges, "exchanges", 100000, "messages or requests of a run, over all connections")
	flag.IntVar(&o.Handshakes, "handshakes", 2000, "handshakes of a run")
	flag.IntVar(&o.Idle, "idle", 10000, "idle connections, for their memory")
	flag.DurationVar(&o.Flood, "flood", 5*time.Second, "how long a flood of handshakes lasts")
	flag.IntVar(&o.Reactors, "reactors", 1, "reactors, GOMAXPROCS, workers of each server; the row flood has one for each CPU")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.Parse()
	valid := min(o.Pairs, o.Conns, o.Exchanges, o.Reactors, o.Handshakes, o.Idle) >= 1 && o.Flood > 0
	command.Main("bench/tls", valid, "numbers start at 1", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-tls-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx is nobody's
		return err
	}
	m := measurement{Options: o, out: out}
	if m.build, err = build.Into(dir); err != nil {
		return err
	}
	if m.identity, err = identity.Issue(dir); err != nil {
		return err
	}
	if m.load, err = m.build.Go("tls/load"); err != nil {
		return err
	}
	var above []error
	for _, i := range chosen {
		err := m.row(ctx, names[i])
		var limit aboveLimit
		if !errors.As(err, &limit) && err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		above = append(above, err)
	}
	return errors.Join(above...)
}
