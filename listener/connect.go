package listener

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Connect is a leaf that connects to an address without blocking. When it is Done, take the connection with Conn. A name
// is looked up by the Group's Executor, and its addresses are tried one after the other. Bound it with [Within]: the
// system may try for minutes. On an order it goes on, and passes it on to a filter.
type Connect struct {
	// Address is "host:port", "[::1]:port", or "unix:" and a path.
	Address string
	Limits  Limits
	// KeepAlive is the time of silence after which the system probes a TCP peer; 0 means a minute, and less never.
	KeepAlive time.Duration
	// Filters prepare the connection, in this order, within FilterTimeout for all together; 0 means 10 s. If one
	// refuses, the connect has failed; further addresses are not tried.
	Filters       []Filter
	FilterTimeout time.Duration

	engine    monitor.Engine
	lookup    *act.Call[[]netip.AddrPort]
	step      act.Child // the lookup, then the filters
	addresses []net.Addr
	dial      monitor.PendingConn
	result    handover
	err       error
	state     connectState
}

type connectState uint8

const (
	unresolved connectState = iota
	resolved
	filtering
	connected
	refused
)

// ConnectError is what Connect fails with.
type ConnectError struct {
	Address string // as it was given to Connect
	Err     error  // why; of several addresses the last one's
}

func (e *ConnectError) Error() string {
	return "listener: connect to " + e.Address + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *ConnectError) Unwrap() error { return e.Err }

// Act is Done when the connection is established. It fails with a *ConnectError.
func (c *Connect) Act(t *act.Task) act.Directive {
	d := act.Done
	if c.state == unresolved {
		d = c.resolve(t)
	}
	if c.state == resolved {
		d = c.connect(t)
	}
	if c.state == filtering {
		d = c.filter(t)
	}
	if c.state == refused {
		return t.Fail(&ConnectError{c.Address, c.err})
	}
	return d
}

// Conn takes the connection; nil if there is none, or it was taken. It is the caller's to close. One that is not taken is
// aborted when the task ends.
func (c *Connect) Conn() *Conn {
	if c.state != connected {
		return nil
	}
	return c.result.take()
}

// Waits is for package inspect: it says what a waiting task waits for.
func (c *Connect) Waits(add func(what string)) {
	switch {
	case c.state == unresolved && c.lookup != nil:
		add("a lookup of " + c.Address)
	case c.state == resolved && c.dial != nil:
		add("a connection to " + c.Address)
	case c.state == filtering:
		hook.AskWaits(c.step.Action, add)
		c.result.conn.Waits(add)
	}
}

// Stop passes an order on to a filter.
func (c *Connect) Stop(t *act.Task, o shutdown.Order) { c.step.Stop(t, o) }

// Abandon aborts the connection: a function that a filter, or the lookup, has offloaded does not use it.
func (c *Connect) Abandon() act.Action {
	rest := c.step.Abandon()
	_ = c.Close()
	return rest
}

// Close gives up a connection that is not established, or whose filters have not finished: Act then fails.
func (c *Connect) Close() error {
	if c.state >= connected {
		return nil
	}
	_ = c.step.Close()
	if c.dial != nil {
		c.dial.Close()
	}
	if conn := c.result.take(); conn != nil {
		conn.Abort()
	}
	c.err, c.state = net.ErrClosed, refused
	return nil
}

// resolve finds the addresses: at once if Address has a number, otherwise by a lookup off the thread.
func (c *Connect) resolve(t *act.Task) act.Directive {
	if c.engine == nil {
		c.Limits.Resolved() // it may panic, while there is no descriptor to close
		var err error
		if c.engine, err = monitor.EngineOf(t.Scheduler()); err != nil {
			return c.refuse(err)
		}
	}
	if path, ok := strings.CutPrefix(c.Address, "unix:"); ok {
		c.addresses, c.state = []net.Addr{&net.UnixAddr{Name: path, Net: "unix"}}, resolved
		return act.Done
	}
	if at, err := netip.ParseAddrPort(c.Address); err == nil {
		c.addresses, c.state = []net.Addr{net.TCPAddrFromAddrPort(at)}, resolved
		return act.Done
	}
	if c.lookup == nil {
		address := c.Address
		c.lookup = &act.Call[[]netip.AddrPort]{F: func() ([]netip.AddrPort, error) { return lookUp(address) }}
		c.step = act.Child{Action: c.lookup}
	}
	d := c.step.Act(t)
	switch d {
	case act.Done:
		for _, at := range c.lookup.Value {
			c.addresses = append(c.addresses, net.TCPAddrFromAddrPort(at))
		}
		c.step, c.state = act.Child{}, resolved
	case act.Failed:
		return c.refuse(t.Err())
	}
	return d
}

func (c *Connect) refuse(err error) act.Directive {
	c.err, c.state = err, refused
	return act.Failed // Act fails with the whole story
}

// connect tries the addresses.
func (c *Connect) connect(t *act.Task) act.Directive {
	for {
		if c.dial == nil && !c.next() {
			return c.refuse(c.err)
		}
		stream, err := c.dial.Stream()
		if err == monitor.ErrWouldBlock {
			c.dial.Await(t.Waker())
			return act.Wait
		}
		c.dial = nil
		if err != nil {
			c.err = err
			continue
		}
		conn := NewConn(t.Scheduler(), stream, c.Limits)
		c.result.offer(t, conn)
		c.state = connected
		if len(c.Filters) > 0 {
			c.step, c.state = act.Child{Action: Filtered(conn, c.FilterTimeout, c.Filters...)}, filtering
		}
		return act.Done
	}
}

func (c *Connect) filter(t *act.Task) act.Directive {
	d := c.step.Act(t)
	switch d {
	case act.Done:
		c.state = connected
	case act.Failed:
		_ = c.result.take().Close() // an error means that the peer has gone
		c.refuse(t.Err())
	}
	return d
}

// next begins to connect to the next address that can be tried, and reports whether there was one.
func (c *Connect) next() bool {
	for len(c.addresses) > 0 {
		at := c.addresses[0]
		c.addresses = c.addresses[1:]
		dial, err := c.engine.Dial(at, monitor.DialOptions{KeepAlive: c.KeepAlive,
			ReceiveBuffer: c.Limits.ReceiveBuffer, SendBuffer: c.Limits.SendBuffer})
		if err == nil {
			c.dial = dial
			return true
		}
		c.err = err
	}
	return false
}

func lookUp(address string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, errors.New("no address found")
	}
	all := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		all[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return all, nil
}
