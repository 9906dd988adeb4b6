package main

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"crypto/tls"

	"github.com/daimon-go/daimon/bench/internal/load"
)

// patience bounds an exchange.
const patience = time.Minute

// crowd is all clients.
type crowd struct {
	handshakes string
	every      time.Duration
	answer     int // bytes of the content of an answer; -1: the talk has the answers
	talk       load.Talk

	addr    string
	config  *tls.Config // nil: no TLS
	clients []client
	left    atomic.Int64 // exchanges that nobody has begun
}

// client has one exchange after the other, on a connection that is kept, or on one for each.
type client struct {
	of    *crowd
	conn  net.Conn      // nil with -handshakes
	buf   []byte        // for one byte more than an answer has
	in    *bufio.Reader // of conn, with -answer
	phase int
	took  []time.Duration // with -every
}

func (c *crowd) prepare(addr string, conns int, certificate string) (err error) {
	c.addr = addr
	if certificate != "" {
		if c.config, err = load.Trust(certificate); err != nil {
			return err
		}
	}
	if c.handshakes == "resumed" {
		if err := c.obtainSession(); err != nil {
			return err
		}
	}
	for i := range conns {
		k := client{of: c, phase: i * 7 % c.talk.Count(), buf: make([]byte, len(c.talk.Hear)+1)}
		if c.handshakes == "" {
			if k.conn, err = c.dial(); err != nil {
				return err
			}
		}
		if c.answer >= 0 {
			k.in = bufio.NewReaderSize(k.conn, 64<<10)
		}
		c.clients = append(c.clients, k)
	}
	return c.run(conns)
}

// run has so many exchanges over all clients.
func (c *crowd) run(exchanges int) error {
	c.left.Store(int64(exchanges))
	failures := make(chan error, len(c.clients))
	var all sync.WaitGroup
	for i := range c.clients {
		all.Go(func() { failures <- c.clients[i].run(i) })
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *client) run(index int) error {
	k.took = k.took[:0]
	next := time.Now().Add(k.of.every * time.Duration(index) / time.Duration(len(k.of.clients)))
	for k.of.left.Add(-1) >= 0 {
		if k.of.every > 0 {
			time.Sleep(time.Until(next))
			next = next.Add(k.of.every)
		}
		start := time.Now()
		exchange := k.exchange
		if k.of.handshakes != "" {
			exchange = k.of.handshake
		}
		if err := exchange(); err != nil {
			return err
		}
		if k.of.every > 0 {
			k.took = append(k.took, time.Since(start))
		}
	}
	return nil
}

// exchange says something and hears the answer.
func (k *client) exchange() error {
	t := k.of.talk
	k.phase = (k.phase + 1) % t.Count()
	if err := k.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := k.conn.Write(t.Message(k.phase)); err != nil {
		return err
	}
	if k.in != nil {
		return k.hear()
	}
	got, want := 0, t.Answer(k.phase)
	for got < len(want) {
		n, err := k.conn.Read(k.buf[got : len(want)+1])
		got += n
		if err != nil && got < len(want) {
			return fmt.Errorf("the server closed a connection: %w", err)
		}
	}
	switch {
	case got > len(want):
		return fmt.Errorf("the server sent more than was expected")
	case !t.Same(k.buf[:got], want):
		return fmt.Errorf("the server sent other bytes than were expected")
	}
	return nil
}

// latencies returns the median, the 99th percentile and the maximum.
func (c *crowd) latencies() string {
	var all []time.Duration
	for _, k := range c.clients {
		all = append(all, k.took...)
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%d %d %d", all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
}
