package sim

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/internal/thread"
)

// Script is what a client does, in straight lines. It is called on a coroutine of the world: nothing of it runs
// beside anything else, and it must not use goroutines of its own. An error fails the world, unless it is one of
// the connection (a reset, say) and the world or the server's end has caused it.
type Script func(c *Client) error

// Client is one connection from outside, and a net.Conn for whoever plays its part. Its calls block the strand of
// the script that makes them, and nobody else.
type Client struct {
	w       *World
	id      int
	address string
	end     *end // nil: not connected
	strands []*strand
	present *strand      // whose step it is
	left    int          // strands that have not ended
	limit   [2]time.Time // deadlines of Read and Write
	closed  bool
	dice    dice
	draws   *rand.Rand
}

// strand is a coroutine of a script.
type strand struct {
	c      *Client
	script Script
	next   func() (struct{}, bool) // nil before the first step
	stop   func()
	yield  func(struct{}) bool
	at     int    // in World.able
	waits  string // for what; "": for nothing
	ended  bool
}

// Client adds a client that connects to address, "10.0.0.1:80" or "unix:" and a path, and then does as script
// says. It begins when Run does, or at once if that has begun.
func (w *World) Client(address string, script Script) *Client {
	c := &Client{w: w, id: len(w.clients) + 1, address: address}
	if w.closing {
		w.wrong("%v begins when the servers have been told to end", c)
	}
	c.dice = newDice(w.options.Seed, workload+purposes*purpose(c.id)) // its own: who else draws does not shift it
	c.dice.tape = w.dice[workload].tape
	c.draws = rand.New(&c.dice)
	w.clients = append(w.clients, c)
	w.open++
	c.begin(func(c *Client) error {
		if err := c.connect(); err != nil {
			return err
		}
		return script(c)
	})
	return c
}

// Go adds a strand to the script: one may read while another writes. The connection is closed when all have
// ended.
func (c *Client) Go(script Script) { c.begin(script) }

func (c *Client) begin(script Script) {
	s := &strand{c: c, script: script, at: -1}
	c.strands = append(c.strands, s)
	c.left++
	c.w.enable(s)
}

func (c *Client) String() string { return fmt.Sprintf("client %d", c.id) }
func (c *Client) number() uint64 { return numbersOfClients | uint64(c.id) }

// World is where the client lives.
func (c *Client) World() *World { return c.w }

// Rand draws from the client's own part of the world's workload.
func (c *Client) Rand() *rand.Rand { return c.draws }

// ready tells the client that it may be able to go on.
func (c *Client) ready() {
	for _, s := range c.strands {
		s.fire()
	}
}

func (s *strand) place() *int { return &s.at }

// fire lets the strand look again at what it waits for.
func (s *strand) fire() {
	if !s.ended {
		s.c.w.enable(s)
	}
}

// step goes on to the next thing that the strand waits for.
func (s *strand) step() {
	w := s.c.w
	w.now += passTime
	w.disable(s)
	if s.next == nil { // here and not earlier: a coroutine belongs to the thread that Run is locked to
		s.next, s.stop = iter.Pull(s.play)
	}
	s.c.present = s
	_, more := s.next()
	s.c.present = nil
	if more {
		return
	}
	s.ended = true
	w.disable(s) // what it did last may have enabled it again
	if s.c.left--; s.c.left == 0 {
		w.open--
		if s.c.end != nil {
			s.c.end.close()
		}
	}
}

// errStopped unwinds a script that the world gives up.
var errStopped = errors.New("sim: the world has ended")

// play is the coroutine.
func (s *strand) play(yield func(struct{}) bool) {
	s.yield = yield
	c := s.c
	defer func() {
		if v := recover(); v != nil && v != errStopped {
			panic(fmt.Sprintf("%v of %s: %v\n%s", c, c.address, v, debug.Stack()))
		}
	}()
	if err := s.script(c); err != nil && !c.excused(err) {
		c.w.wrong("%v of %s: %w", c, c.address, err)
	}
}

// pause gives up the thread until somebody lets the strand look again.
func (c *Client) pause(what string) {
	s := c.present
	if s == nil || thread.ID() != c.w.thread {
		panic("sim: a Client is used outside of its script")
	}
	s.waits = what
	if !s.yield(struct{}{}) {
		panic(errStopped)
	}
	s.waits = ""
}

// Sleep lets d pass.
func (c *Client) Sleep(d time.Duration) {
	for until := c.w.now + d; c.w.now < until; {
		c.w.agenda.add(until, c.present)
		c.pause("time to pass")
	}
}

func (c *Client) connect() error {
	var err error
	if path, ok := strings.CutPrefix(c.address, "unix:"); ok {
		c.end, err = c.w.net.dialUnix(path, c)
	} else {
		var at netip.AddrPort
		if at, err = netip.ParseAddrPort(c.address); err == nil {
			c.end, err = c.w.net.dialTCP(at, c)
		}
	}
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	for !c.end.settled() {
		c.pause("the connection")
	}
	if err := c.end.socketError(); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return nil
}

// Read waits for at least a byte. The end of the stream is io.EOF.
func (c *Client) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if c.closed {
			return 0, net.ErrClosed
		}
		n, err := c.end.receive(p)
		if err != syscall.EAGAIN {
			c.w.note(clientDoes, c, returned(n, err), int64(reads))
			return n, err
		}
		if err := c.await("something to read", 0); err != nil {
			return 0, err
		}
	}
}

// Write waits until all of p is on its way.
func (c *Client) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		if c.closed {
			return all - len(p), net.ErrClosed
		}
		n, err := c.end.send(nil, p)
		if err != syscall.EAGAIN {
			c.w.note(clientDoes, c, returned(n, err), int64(writes))
		}
		p = p[n:]
		switch {
		case err == syscall.EAGAIN, err == nil && len(p) > 0:
			if err := c.await("room to write", 1); err != nil {
				return all - len(p), err
			}
		case err != nil:
			return all - len(p), err
		}
	}
	return all, nil
}

// await pauses, at most until a deadline: the first is that of Read, the second that of Write.
func (c *Client) await(what string, which int) error {
	if limit := c.limit[which]; !limit.IsZero() {
		at := limit.Sub(epoch)
		if c.w.now >= at {
			return os.ErrDeadlineExceeded
		}
		c.w.agenda.add(at, c.present)
	}
	c.pause(what)
	return nil
}

// CloseWrite ends what the client sends; it may go on reading.
func (c *Client) CloseWrite() error {
	err := c.end.closeWrite()
	c.w.note(clientDoes, c, returned(0, err), int64(closesWrite))
	return err
}

// Close closes the connection. Like a real one it resets it if something is unread.
func (c *Client) Close() error {
	c.w.note(clientDoes, c, 0, int64(closes))
	c.end.close()
	c.closed = true
	c.ready()
	return nil
}

// Abort resets the connection.
func (c *Client) Abort() {
	c.w.note(clientDoes, c, 0, int64(aborts))
	c.end.reset()
	c.closed = true
	c.ready()
}

// LocalAddr is the client's address.
func (c *Client) LocalAddr() net.Addr { return c.end.localAddr() }

// RemoteAddr is the server's.
func (c *Client) RemoteAddr() net.Addr { return c.end.peerAddr() }

// SetDeadline bounds Read and Write; times are the world's, see Now.
func (c *Client) SetDeadline(at time.Time) error { return c.setLimits(at, at) }

// SetReadDeadline bounds Read.
func (c *Client) SetReadDeadline(at time.Time) error { return c.setLimits(at, c.limit[1]) }

// SetWriteDeadline bounds Write.
func (c *Client) SetWriteDeadline(at time.Time) error { return c.setLimits(c.limit[0], at) }

func (c *Client) setLimits(read, write time.Time) error {
	c.limit = [2]time.Time{read, write}
	c.ready() // whoever waits looks again for how long
	return nil
}

// Now is the world's time as a time of day, which never jumps.
func (c *Client) Now() time.Time { return epoch.Add(c.w.now) }

// excused tells whether err is one of the connection that the client need not have reckoned without.
func (c *Client) excused(err error) bool {
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	for _, e := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, syscall.ETIMEDOUT,
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENOTCONN, syscall.EAGAIN, syscall.ENOENT} {
		broken = broken || errors.Is(err, e)
	}
	return broken && (c.w.net.hurt(c.end) || c.w.net.held(c.end) || c.dropping()) || c.w.excuse != nil && c.w.excuse(c, err)
}

// deed is what a client does, for the history.
type deed int64

const (
	reads deed = iota
	writes
	closesWrite
	closes
	aborts
)

func (d deed) String() string {
	return [...]string{"reads", "writes", "closes its write side", "closes", "aborts"}[d]
}

// endClients stops the scripts that have not ended.
func (w *World) endClients() {
	for _, c := range w.clients {
		for _, s := range c.strands {
			if s.stop != nil {
				s.stop()
			}
		}
	}
}

// dropping tells whether the server of c has been told to end, and may cut connections; of a connection that was
// never accepted, whether any has.
func (c *Client) dropping() bool {
	if c.end != nil {
		switch h := c.end.peer().holder.(type) {
		case *file:
			return h.k.server.order != nil
		case *stream:
			return h.e.r.server.order != nil
		}
	}
	return slices.ContainsFunc(c.w.servers, func(v *Server) bool { return v.order != nil })
}
