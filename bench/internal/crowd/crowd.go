// Package crowd measures the memory that a server spends on connections on which nothing happens.
package crowd

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/server"
)

const (
	patience = time.Minute // for an exchange
	settling = time.Second // what a server may take to give back what it needed only for accepting and answering
)

// Fits finds out beforehand whether there are descriptors enough for n connections: of the client and of a
// server, which has the same limit.
func Fits(n int) error {
	const beside = 100 // files, pipes, listeners
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	if uint64(n)+beside > files.Max {
		return fmt.Errorf("%d connections: a process may have no more than %d files open here (ulimit -Hn)", n, files.Max)
	}
	return nil
}

// Each starts s and returns the growth of its resident set for each of n connections, in bytes. Each connection has one
// exchange. A server keeps the memory of closed connections for new ones, so s is started anew every time.
func Each(ctx context.Context, s *server.Process, n int, exchange func(net.Conn) error) (float64, error) {
	if err := s.Start(ctx); err != nil {
		return 0, err
	}
	defer s.Stop()
	growth, err := growth(ctx, s, n, exchange)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	return float64(growth) / float64(n), nil
}

// growth makes one exchange first, so that the server's code is in memory.
func growth(ctx context.Context, s *server.Process, n int, exchange func(net.Conn) error) (bytes int, err error) {
	first, err := Dial(ctx, s.Addr(), 1, exchange)
	Close(first)
	if err != nil {
		return 0, err
	}
	before, err := s.Memory()
	if err != nil {
		return 0, err
	}
	conns, err := Dial(ctx, s.Addr(), n, exchange)
	defer Close(conns)
	if err != nil {
		return 0, err
	}
	time.Sleep(settling)
	after, err := s.Memory()
	return after - before, err
}

// Dial makes n connections to addr, one after the other, with an exchange on each. They are returned after an error, too.
// Closing one of them resets it.
func Dial(ctx context.Context, addr string, n int, exchange func(net.Conn) error) (conns []net.Conn, err error) {
	for range n {
		if err := ctx.Err(); err != nil {
			return conns, err
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		_ = c.(*net.TCPConn).SetLinger(0)           // thousands of ports need not wait for what is still under way
		_ = c.SetDeadline(time.Now().Add(patience)) // both fail on closed connections only
		if err := exchange(c); err != nil {
			return conns, fmt.Errorf("connection %d: %w", len(conns), err)
		}
	}
	return conns, nil
}

// Close closes all connections.
func Close(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
