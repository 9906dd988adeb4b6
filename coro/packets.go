package coro

import (
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// PacketConn is a conversation by datagrams: a [listener.Peer] as a net.Conn and a net.PacketConn, whose reads seem to block.
// Writes never wait. What is said at [Conn] of goroutines, and of 16 calls in a turn, holds here too. [ServePeer] makes
// PacketConns.
type PacketConn struct {
	peer     *listener.Peer
	co       *Co
	deadline time.Duration // of reading, on the scheduler's clock; 0: none
	timer    act.Timer
}

var (
	_ net.Conn       = (*PacketConn)(nil)
	_ net.PacketConn = (*PacketConn)(nil)
)

// ServePeer returns a handler that runs f as a coroutine for each peer, for service.Peers. When f returns, the conversation has
// ended. Reads return net.ErrClosed when the service ends the conversation; if f then returns that error, the task has not
// failed.
func ServePeer(f func(*PacketConn) error) func(*listener.Peer) act.Action {
	if f == nil {
		panic("coro: ServePeer without a function")
	}
	return func(p *listener.Peer) act.Action {
		return (*routine)(&Co{body: &body{given: f, run: func(co *Co) error { return f(co.PacketConn(p)) }}})
	}
}

// PacketConn returns a PacketConn over p, which [listener.DialPackets] may have made, for the coroutines of co's task. The owner
// of p still has to close it.
func (co *Co) PacketConn(p *listener.Peer) *PacketConn { return &PacketConn{peer: p, co: co} }

// Co returns the coroutine that the PacketConn was made for.
func (c *PacketConn) Co() *Co { return c.co }

// Read waits for a packet and copies what fits into p; the rest of the packet is lost. The error is net.ErrClosed when the
// conversation has ended, os.ErrDeadlineExceeded, an error of the kernel, or one that stops the body from waiting (see [Co]).
func (c *PacketConn) Read(p []byte) (int, error) {
	co := c.co.Caller()
	for {
		if err := co.call(); err != nil {
			return 0, err
		}
		in, err := c.peer.Receive()
		b, blocked := err.(act.Blocked)
		switch {
		case !blocked:
			return copy(p, in.Data), err
		case c.deadline == 0:
		case co.Scheduler().Now() >= c.deadline:
			return 0, os.ErrDeadlineExceeded
		default:
			co.task.WakeAt(&c.timer, c.deadline)
		}
		if err := co.wait(b); err != nil {
			return 0, err
		}
	}
}

// ReadFrom is [PacketConn.Read]. The address is always that of the peer.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := c.Read(p)
	return n, c.RemoteAddr(), err
}

// Write queues a packet with a copy of p: see [listener.Peer.Send].
func (c *PacketConn) Write(p []byte) (int, error) {
	if err := c.co.Caller().call(); err != nil {
		return 0, err
	}
	if err := c.peer.Send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteTo is [PacketConn.Write]. Any other address than that of the peer is an error.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if to == nil || to.String() != c.RemoteAddr().String() {
		return 0, fmt.Errorf("coro: a packet to %v in a conversation with %v", to, c.RemoteAddr())
	}
	return c.Write(p)
}

// Close ends the conversation: see [listener.Peer.Close].
func (c *PacketConn) Close() error {
	c.timer.Stop()
	c.co.Caller().task.Waker().Wake()
	return c.peer.Close()
}

// LocalAddr returns the address of the socket.
func (c *PacketConn) LocalAddr() net.Addr { return c.peer.Conn().LocalAddr() }

// RemoteAddr returns the address of the peer.
func (c *PacketConn) RemoteAddr() net.Addr { return c.peer.RemoteAddr() }

// SetDeadline is [PacketConn.SetReadDeadline], since writes do not wait.
func (c *PacketConn) SetDeadline(at time.Time) error { return c.SetReadDeadline(at) }

// SetReadDeadline makes reads that wait return os.ErrDeadlineExceeded from the given time on. The zero Time means no deadline.
func (c *PacketConn) SetReadDeadline(at time.Time) error {
	task := c.co.Caller().task
	clock := task.Scheduler().Clock()
	c.deadline = 0
	if now, left := clock.Monotonic(), at.Sub(clock.Wall()); !at.IsZero() {
		c.deadline = max(1, now+min(left, math.MaxInt64-now))
	}
	c.timer.Stop()
	task.Waker().Wake() // another coroutine may read
	return nil
}

// SetWriteDeadline does nothing, since writes do not wait.
func (c *PacketConn) SetWriteDeadline(time.Time) error { return nil }
