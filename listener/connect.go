package listener

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// Connect is a leaf that connects to an address without blocking. When it is Done, take the connection
// with Conn. A name is looked up by the Group's Executor, and its addresses are tried one after the
// other. Bound it with Within: the system may try for minutes. On an order it goes on.
type Connect struct {
	// Address is "host:port", "[::1]:port", or "unix:" and a path.
	Address string
	Limits  Limits

	engine    monitor.Engine
	lookup    *act.Call[[]netip.AddrPort]
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

// Act is Done when the connection stands. It fails with a *ConnectError.
func (c *Connect) Act(t *act.Task) act.Directive {
	if c.state == unresolved {
		if d := c.resolve(t); d != act.Done {
			return d
		}
	}
	for c.state == resolved {
		if c.dial == nil && !c.next() {
			c.state = refused
			break
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
		c.result.offer(t, NewConn(t.Scheduler(), stream, c.Limits))
		c.state = connected
	}
	if c.state == refused {
		return t.Fail(&ConnectError{c.Address, c.err})
	}
	return act.Done
}

// Conn takes the connection; nil if there is none, or it was taken. It is the caller's to close. One that
// nobody takes is aborted when the task ends.
func (c *Connect) Conn() *Conn { return c.result.take() }

// Close gives up a connect that is not decided: it has failed then.
func (c *Connect) Close() error {
	if c.state > resolved {
		return nil
	}
	if c.lookup != nil {
		_ = c.lookup.Close()
	}
	if c.dial != nil {
		c.dial.Close()
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
			return c.refuse(t, err)
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
	}
	d := c.lookup.Act(t)
	switch d {
	case act.Done:
		for _, at := range c.lookup.Value {
			c.addresses = append(c.addresses, net.TCPAddrFromAddrPort(at))
		}
		c.state = resolved
	case act.Failed:
		return c.refuse(t, t.Err())
	}
	return d
}

func (c *Connect) refuse(t *act.Task, err error) act.Directive {
	c.err, c.state = err, refused
	return act.Done // Act goes on and says so
}

// next begins to connect to the next address and reports whether there was one that could be tried.
func (c *Connect) next() bool {
	for len(c.addresses) > 0 {
		at := c.addresses[0]
		c.addresses = c.addresses[1:]
		dial, err := c.engine.Dial(at, nil)
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
