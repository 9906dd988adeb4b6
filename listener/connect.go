package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Connect is an action that dials an address without blocking. When it is Done, take the connection with its method
// Conn. Bound it with [Within], since the kernel may try for minutes; the bound includes the lookup and the filters.
// During shutdown it goes on, and a filter is told.
//
// A name is looked up by the scheduler's [monitor.Resolver], on the Group's Executor. If it has several addresses, they
// race by the rules of RFC 8305 (Happy Eyeballs): IPv4 and IPv6 take turns, and the family of the first address begins.
// Each attempt begins 250 ms after the previous one, or at once when one has failed. At most 16 are under way. The
// first that connects wins, and the others are closed.
type Connect struct {
	// Address is where to connect: "host:port", "[::1]:port", or "unix:" and a path.
	Address string
	// Limits bound the memory and the time of the connection. The zero Limits has defaults.
	Limits Limits
	// KeepAlive is the time of silence after which the kernel probes a TCP peer; 0 means a minute, less than 0 never.
	KeepAlive time.Duration
	// Filters prepare the connection when it is established, in this order: TLS, for example. FilterTimeout bounds all of
	// them together; 0 means 10 s. If one refuses, the dial has failed; further addresses are not tried.
	Filters       []Filter
	FilterTimeout time.Duration

	lookup   *act.Call[[]net.Addr]
	cancel   context.CancelFunc // of the lookup
	step     act.Child          // the lookup, then the filters
	attempts attempts
	result   handover
	err      error
	state    connectState
}

type connectState uint8

const (
	unresolved connectState = iota
	resolved
	filtering
	connected
	refused
)

// target is the address of an error.
type target struct{ network, address string }

func (a target) Network() string { return a.network }
func (a target) String() string  { return a.address }

// Act returns Done when the connection is established. It fails with a *net.OpError whose Op is "dial". If Address has
// a host name, its Err joins the errors of all addresses.
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
		network := "tcp"
		if strings.HasPrefix(c.Address, "unix:") {
			network = "unix"
		}
		return t.Fail(&net.OpError{Op: "dial", Net: network, Addr: target{network, c.Address}, Err: c.err})
	}
	return d
}

// Conn takes the connection once Connect is Done. It returns nil if there is none, or if it was taken. The caller then
// owns it and closes it. A connection that is not taken is aborted when the task ends.
func (c *Connect) Conn() *Conn {
	if c.state != connected {
		return nil
	}
	return c.result.take()
}

// Describe implements [act.Describer]: it names the lookup, the connection or the filter that the task waits for.
func (c *Connect) Describe(d *act.Description) {
	switch {
	case c.state == unresolved && c.lookup != nil:
		d.WaitsFor("a lookup of " + c.Address)
	case c.state == resolved && len(c.attempts.pending) > 0:
		d.WaitsFor("a connection to " + c.Address)
	case c.state == filtering:
		d.Of(c.step.Action)
		d.Of(c.result.conn)
	}
}

// Stop implements [act.Stopper]: it tells the filter that prepares the connection, if there is one, of the shutdown.
func (c *Connect) Stop(t *act.Task, o shutdown.Order) { c.step.Stop(t, o) }

// Abandon implements [act.Abandoner]. It aborts the connection, which a function that a filter or the lookup has
// offloaded does not use.
func (c *Connect) Abandon() act.Action {
	rest := c.step.Abandon()
	_ = c.Close()
	return rest
}

// Close gives up a dial that has not finished, with its filters: Act then fails. After Done it does nothing; the task
// owns the connection until it is taken.
func (c *Connect) Close() error {
	if c.state >= connected {
		return nil
	}
	_ = c.step.Close()
	if c.cancel != nil {
		c.cancel()
	}
	c.attempts.close()
	if conn := c.result.take(); conn != nil {
		conn.Abort()
	}
	c.err, c.state = net.ErrClosed, refused
	return nil
}

// resolve finds the addresses: at once if Address has an IP address, otherwise by a lookup on another goroutine.
func (c *Connect) resolve(t *act.Task) act.Directive {
	if c.attempts.engine == nil {
		err := c.check()
		if err != nil {
			return c.refuse(err)
		}
		if c.attempts.engine, err = monitor.EngineOf(t.Scheduler()); err != nil {
			return c.refuse(err)
		}
	}
	if path, ok := strings.CutPrefix(c.Address, "unix:"); ok {
		return c.try(&net.UnixAddr{Name: path, Net: "unix"})
	}
	if at, err := netip.ParseAddrPort(c.Address); err == nil {
		return c.try(net.TCPAddrFromAddrPort(at))
	}
	if c.lookup == nil {
		c.lookup, c.cancel = newLookup(t, "tcp", c.Address)
		c.step = act.Child{Action: c.lookup}
	}
	d := c.step.Act(t)
	switch d {
	case act.Done:
		c.attempts.named = true
		return c.try(c.lookup.Value...)
	case act.Failed:
		return c.refuse(t.Err())
	}
	return d
}

// check returns what is wrong with the fields.
func (c *Connect) check() error {
	switch {
	case slices.ContainsFunc(c.Filters, func(f Filter) bool { return f == nil }):
		return errors.New("a Filter is nil")
	case c.FilterTimeout < 0:
		return fmt.Errorf("a negative FilterTimeout: %v", c.FilterTimeout)
	}
	return c.Limits.check()
}

// try sets the addresses to be tried.
func (c *Connect) try(addresses ...net.Addr) act.Directive {
	c.attempts.rest = addresses
	c.attempts.options = engine.ConnOptions{KeepAlive: c.KeepAlive, ReceiveBuffer: c.Limits.ReceiveBuffer, SendBuffer: c.Limits.SendBuffer}
	c.step, c.state = act.Child{}, resolved
	return act.Done
}

func (c *Connect) refuse(err error) act.Directive {
	c.err, c.state = err, refused
	return act.Failed // Act fails with c.err
}

// connect tries the addresses, and gives the connection to the filters.
func (c *Connect) connect(t *act.Task) act.Directive {
	stream, err := c.attempts.stream(t)
	switch {
	case err == monitor.ErrWouldBlock:
		return act.Wait
	case err != nil:
		return c.refuse(err)
	}
	conn := NewConn(t.Scheduler(), stream, c.Limits)
	c.result.offer(t, conn)
	c.state = connected
	if len(c.Filters) > 0 {
		c.step, c.state = act.Child{Action: conn.Internals().Filtered(c.FilterTimeout, c.Filters...)}, filtering
	}
	return act.Done
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

// newLookup returns the lookup of a name, and what gives it up.
func newLookup(t *act.Task, network, address string) (*act.Call[[]net.Addr], context.CancelFunc) {
	resolver := monitor.ResolverOf(t.Scheduler())
	ctx, cancel := context.WithCancel(context.Background())
	return &act.Call[[]net.Addr]{F: func() ([]net.Addr, error) {
		defer cancel()
		return lookUp(ctx, resolver, network, address)
	}}, cancel
}

// lookUp returns the addresses of a name and a port, in the order in which they are tried.
func lookUp(ctx context.Context, resolver monitor.Resolver, network, address string) ([]net.Addr, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return nil, err
	}
	ips, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, errors.New("no address found")
	}
	all := make([]net.Addr, 0, len(ips))
	for _, ip := range inTurn(ips) {
		at := netip.AddrPortFrom(ip, uint16(port))
		if network == "udp" {
			all = append(all, net.UDPAddrFromAddrPort(at))
		} else {
			all = append(all, net.TCPAddrFromAddrPort(at))
		}
	}
	return all, nil
}
