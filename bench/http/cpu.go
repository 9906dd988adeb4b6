package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// cpu prints a table for each depth, with the same servers, and returns what of them is above its limit.
func (o Options) cpu(ctx context.Context, out io.Writer, clients load.Generator, servers []*server.Process) error {
	var above []error
	for _, depth := range o.Depths {
		talks, err := o.talks(servers, depth)
		if err != nil {
			return err
		}
		exchanges := (o.Requests + depth - 1) / depth
		costs := make([][]load.Cost, len(servers))
		run := func(i int) (float64, error) {
			cost, err := clients.Run(ctx, servers[i], talks[i], exchanges)
			costs[i] = append(costs[i], cost)
			return cost.CPU / float64(depth), err
		}
		for i := range servers { // warms up, counts nowhere
			if _, err := run(i); err != nil {
				return err
			}
			costs[i] = nil
		}
		fmt.Fprintf(out, "server CPU per request, ns; %d at a time, conns %d, requests %d, %d times a second (0: all), reactors %d, load on CPU %d (-1: any)\n"+
			"bytes of an answer:%s\n", depth, o.Conns, exchanges*depth, o.Rate, o.Reactors, clients.CPU, sizes(servers, talks))
		table := o.table(servers, depth)
		medians, err := table.Measure(out, o.Pairs, run)
		if err != nil {
			return err
		}
		if o.Rate > 0 {
			above = append(above, load.Latencies(out, table, costs))
		}
		if o.Limits || o.Max > 0 {
			above = append(above, table.Judge(medians))
		}
	}
	return errors.Join(above...)
}

// talks asks each server once.
func (o Options) talks(servers []*server.Process, depth int) (talks []load.Talk, err error) {
	for _, s := range servers {
		talk, err := o.talk(s, depth)
		if err != nil {
			return nil, err
		}
		talks = append(talks, talk)
	}
	return talks, nil
}

func (o Options) talk(s *server.Process, depth int) (load.Talk, error) {
	r, err := answer.Request(o.Request, s.Addr())
	if err != nil {
		return load.Talk{}, err
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return load.Talk{}, err
	}
	defer c.Close()
	a, err := answer.Ask(c, r, answer.Hello)
	if err != nil {
		return load.Talk{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	return a.Talk(r, depth), nil
}

// sizes are the sizes of the answers. A longer answer costs hardly more, but the reader should know.
func sizes(servers []*server.Process, talks []load.Talk) (list string) {
	for i, s := range servers {
		list += fmt.Sprintf(" %s %d", s.Name, talks[i].Period)
	}
	return list
}
