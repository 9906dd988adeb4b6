package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// settling is what a server may take to give back what it needed only for accepting and answering.
const settling = time.Second

// memory prints the table of -idle. A server that has given up its connections keeps memory for the next
// ones, so each run is on a new process.
func (o Options) memory(ctx context.Context, out io.Writer, servers []*server.Process) error {
	if err := o.descriptors(); err != nil {
		return err
	}
	fmt.Fprintf(out, "growth of the server's resident set per idle connection, bytes; conns %d, one request each, reactors %d\n",
		o.Idle, o.Reactors)
	const anyDepth = 0 // for which there are no limits
	_, err := o.table(servers, anyDepth).Measure(out, o.Pairs, func(i int) (float64, error) {
		if err := servers[i].Start(ctx); err != nil {
			return 0, err
		}
		defer servers[i].Stop()
		growth, err := o.growth(ctx, servers[i])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", servers[i].Name, err)
		}
		return float64(growth) / float64(o.Idle), nil
	})
	return err
}

// descriptors finds out beforehand whether there are enough: of the client and of a server, which has the
// same limit.
func (o Options) descriptors() error {
	const beside = 100 // files, pipes, listeners
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	if uint64(o.Idle)+beside > files.Max {
		return fmt.Errorf("-idle %d: a process may have no more than %d files open here (ulimit -Hn)", o.Idle, files.Max)
	}
	return nil
}

// growth is what the resident set of s gains while it gets its connections.
func (o Options) growth(ctx context.Context, s *server.Process) (bytes int, err error) {
	talk, err := o.talk(s, 1) // also has the server's code in memory
	if err != nil {
		return 0, err
	}
	before, err := s.Memory()
	if err != nil {
		return 0, err
	}
	conns, err := crowd(ctx, s.Addr(), o.Idle, talk)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	time.Sleep(settling)
	after, err := s.Memory()
	return after - before, err
}

// crowd dials n connections, one after the other, and has an answer on each. They are returned after an error,
// too.
func crowd(ctx context.Context, addr string, n int, talk load.Talk) (conns []net.Conn, err error) {
	for range n {
		if err := ctx.Err(); err != nil {
			return conns, err
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if err := exchange(c, talk); err != nil {
			return conns, fmt.Errorf("connection %d: %w", len(conns), err)
		}
	}
	return conns, nil
}

func exchange(c net.Conn, talk load.Talk) error {
	_ = c.(*net.TCPConn).SetLinger(0)           // thousands of ports need not wait for what is still under way
	_ = c.SetDeadline(time.Now().Add(patience)) // both fail on closed connections only
	if _, err := c.Write(talk.Say); err != nil {
		return err
	}
	a, err := read(c)
	if err == nil && !talk.Heard(a.Whole) {
		err = fmt.Errorf("another answer than before: %q", a.Whole)
	}
	return err
}
