package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	cpus "github.com/daimon-go/daimon/bench/internal/cpu"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// load is how messages come: over conns connections in turn, one every gap on average. gap 0 sends as
// soon as the connection whose turn it is has its last message back.
type load struct {
	name     string
	conns    int
	gap      time.Duration
	messages int
}

var loads = []load{
	{"after a rest of 2 ms", 1, 2 * time.Millisecond, 1000},
	{"10,000 messages a second, over 50 connections", 50, 100 * time.Microsecond, 50_000},
	{"one connection, closed loop", 1, 0, 10_000},
	{"100 connections, closed loop", 100, 0, 200_000},
}

// cost is what a load cost the server, and how long its clients waited.
type cost struct {
	cpu, perMessage  float64 // of one CPU; ns
	rate             float64 // messages a second
	median, nineNine time.Duration
}

const (
	size     = 64
	patience = time.Minute // without an answer: the server has lost something
)

// on puts l on s from a thread that is bound to cpu, which is not the scheduler's. The thread never sleeps, so that the
// latency of a client does not include its own wake-up.
func (l load) on(s *server.Process, cpu int) (c cost, err error) {
	clients, err := dial(s.Port, l.conns)
	if err != nil {
		return c, err
	}
	defer hangUp(clients)
	for i := range clients { // all are accepted
		if err := clients[i].echo(); err != nil {
			return c, err
		}
	}
	err = cpus.On([]int{cpu}, func() (err error) {
		c, err = l.measure(s, clients)
		return err
	})
	return c, err
}

func (l load) measure(s *server.Process, clients []client) (cost, error) {
	before, err := s.CPU()
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	waited, err := l.send(clients, start)
	if err != nil {
		return cost{}, err
	}
	took := time.Since(start)
	after, err := s.CPU()
	slices.Sort(waited)
	n := float64(l.messages)
	return cost{
		cpu:        (after - before).Seconds() / took.Seconds(),
		perMessage: float64(after-before) / n,
		rate:       n / took.Seconds(),
		median:     waited[len(waited)/2],
		nineNine:   waited[len(waited)*99/100],
	}, err
}

// send sends all messages and returns how long each took to come back whole, from the moment it was
// due. The gaps vary by half, always in the same way: a fixed gap would fall into step with a strategy that pauses.
func (l load) send(clients []client, start time.Time) (waited []time.Duration, err error) {
	dice := rand.New(rand.NewPCG(1, 2))
	waited = make([]time.Duration, 0, l.messages)
	sent := make([]time.Time, len(clients)) // when the message under way was due
	oldest, next := 0, 0
	due := start
	for len(waited) < l.messages {
		now := time.Now()
		free := next-oldest < len(clients)
		if next < l.messages && free && !now.Before(due) {
			c := next % len(clients)
			if l.gap == 0 {
				due = now
			}
			sent[c] = due
			if err := clients[c].send(); err != nil {
				return nil, err
			}
			next++
			due = due.Add(time.Duration((0.5 + dice.Float64()) * float64(l.gap)))
			continue
		}
		if oldest == next {
			continue // nothing under way, and the next not due
		}
		c := oldest % len(clients)
		whole, err := clients[c].received()
		switch {
		case err != nil:
			return nil, err
		case whole:
			waited = append(waited, time.Since(sent[c]))
			oldest++
		case now.Sub(sent[c]) > patience:
			return nil, fmt.Errorf("no answer within %v", patience)
		}
	}
	return waited, nil
}

// client is a connection with at most one message under way.
type client struct {
	fd  int
	out [size]byte // changes with every message
	in  [size]byte
	got int
}

func dial(port, n int) (clients []client, err error) {
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			hangUp(clients)
			return nil, err
		}
		clients = append(clients, client{fd: fd})
		err = errors.Join(
			unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetNonblock(fd, true))
		if err != nil {
			hangUp(clients)
			return nil, err
		}
	}
	return clients, nil
}

func hangUp(clients []client) {
	for i := range clients {
		_ = unix.Close(clients[i].fd)
	}
}

func (c *client) send() error {
	for i := range c.out {
		c.out[i] += byte(i + 1)
	}
	n, err := unix.Write(c.fd, c.out[:])
	if err == nil && n < size {
		err = fmt.Errorf("%d of %d bytes sent: the socket is full", n, size)
	}
	return err
}

// received reports whether the whole answer has arrived.
func (c *client) received() (whole bool, err error) {
	n, err := unix.Read(c.fd, c.in[c.got:])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, errors.New("the server has closed a connection")
	}
	if c.got += n; c.got < size {
		return false, nil
	}
	c.got = 0
	if c.in != c.out {
		return false, errors.New("the server echoed other bytes than it was sent")
	}
	return true, nil
}

// echo sends one message and waits for it.
func (c *client) echo() error {
	if err := c.send(); err != nil {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if whole, err := c.received(); whole || err != nil {
			return err
		}
	}
	return fmt.Errorf("no answer within %v", patience)
}

// spareCPU is the last CPU that this process may use. A server with one scheduler runs on the first.
func spareCPU() (int, error) {
	all, err := cpus.Allowed()
	switch {
	case err != nil:
		return 0, err
	case len(all) < 2:
		return 0, errors.New("this measurement needs two CPUs: one for the server and one for its clients, which never sleep")
	}
	return all[len(all)-1], nil
}
