package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/crowd"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// memory prints the table of -idle.
func (o Options) memory(ctx context.Context, out io.Writer, servers []*server.Process) error {
	if err := crowd.Fits(o.Idle); err != nil {
		return err
	}
	fmt.Fprintf(out, "growth of the server's resident set per idle connection, bytes; conns %d, one request each, reactors %d\n",
		o.Idle, o.Reactors)
	const anyDepth = 0
	table := o.table(servers, anyDepth)
	_, err := table.Measure(out, o.Pairs, func(i int) (float64, error) {
		return crowd.Each(ctx, servers[i], o.Idle, o.talkOnce())
	})
	return err
}

// talkOnce is a request and its answer. What the first one is, all have to be.
func (o Options) talkOnce() func(net.Conn) error {
	var talk load.Talk
	return func(c net.Conn) error {
		r, err := answer.Request(o.Request, c.RemoteAddr().String())
		if err != nil {
			return err
		}
		if _, err := c.Write(r); err != nil {
			return err
		}
		a, err := answer.Read(c, answer.Hello)
		switch {
		case err != nil:
			return err
		case talk.Hear == nil:
			talk = a.Talk(r, 1)
		case !talk.Heard(a.Whole):
			return fmt.Errorf("another answer than before: %q", a.Whole)
		}
		return nil
	}
}
