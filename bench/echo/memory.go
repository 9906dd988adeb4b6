package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"

	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// memory prints the table of -idle. The limits are for CPU.
func (o Options) memory(ctx context.Context, out io.Writer, servers []*server.Process, ratios []pairs.Ratio) error {
	if err := crowd.Fits(o.Idle); err != nil {
		return err
	}
	fmt.Fprintf(out, "growth of the server's resident set per idle connection, bytes; conns %d, one message of %d bytes each, reactors %d\n",
		o.Idle, o.Size, o.Reactors)
	for i := range ratios {
		ratios[i].Limit = 0
	}
	table := pairs.Table{Columns: names(servers), Ratios: ratios}
	_, err := table.Measure(out, o.Pairs, func(i int) (float64, error) {
		return crowd.Each(ctx, servers[i], o.Idle, o.exchange)
	})
	return err
}

// exchange is a message and its echo.
func (o Options) exchange(c net.Conn) error {
	said := load.Echo(o.Size).Say[:o.Size]
	if _, err := c.Write(said); err != nil {
		return err
	}
	heard := make([]byte, len(said))
	if _, err := io.ReadFull(c, heard); err != nil {
		return err
	}
	if !bytes.Equal(said, heard) {
		return fmt.Errorf("said %q, heard %q", said, heard)
	}
	return nil
}
