package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/internal/thread"
)

// Script is the behaviour of a client, written as straight-line code. The world runs it as a coroutine, so nothing else
// runs at the same time, and a script must not start goroutines. An error fails the world, with one exception: an error
// of the connection, such as a reset, that a fault or the shutdown of the server explains.
type Script func(c *Client) error

// Client is a connection from outside the servers. As a [net.Conn] it can be given to any code that speaks the
// protocol. Its calls block only the script, or the part of it that [Client.Go] has started. Read returns io.EOF at
// the end of the stream, Close resets the connection if received bytes are unread, and deadlines are times of
// [Client.Now].
type Client struct {
	net.Conn // on the simulated network

	w       *World
	id      int
	address string
	end     *end // nil: not connected, or for datagrams
	duct    duct // end, or a socket for datagrams; nil: not connected
	scripts []*routine
	left    int          // of these, how many have not ended
	limit   [2]time.Time // deadlines of Read and Write
	closed  bool
	dice    dice
	draws   *rand.Rand
}

// Client adds a client that connects to the address, "10.0.0.1:80" or "unix:" and a path, and then runs the script.
// It starts when Run does, or at once during Run. A client of "udp:10.0.0.1:53", or of "unixgram:" and a path, has a socket of its
// own for datagrams: Write sends one, and Read returns one, or ECONNREFUSED if nobody has received one.
func (w *World) Client(address string, script Script) *Client {
	c := &Client{w: w, id: len(w.clients) + 1, address: address}
	if w.closing {
		w.Errorf("%v begins after the servers were told to shut down", c)
	}
	c.Conn = (*socket)(c)
	c.dice = newDice(w.options.Seed, workload+purposes*purpose(c.id)) // its own, so that other draws do not change its own
	c.draws = rand.New(&c.dice)
	w.clients = append(w.clients, c)
	w.open++
	c.Go(func(c *Client) error {
		if err := c.connect(); err != nil {
			return err
		}
		return script(c)
	})
	return c
}

// ClientAfterStorm adds a client that connects when all others have finished, the storm is over, and no fault has an effect
// any more. It has to be served as if nothing had happened: no fault excuses an error. A server that survives the storm and
// serves no more fails the world.
func (w *World) ClientAfterStorm(address string, script Script) {
	w.later = append(w.later, func() { w.Client(address, script) })
}

// Go runs a further script on the same connection, concurrently with the others: one can read while another writes.
// The connection is closed when all of them have returned.
func (c *Client) Go(script Script) {
	s := &routine{w: c.w, c: c}
	s.run = func() {
		if err := script(c); err != nil && !c.excused(err) {
			c.w.Errorf("%v: %w", s, err)
		}
		if c.left--; c.left == 0 {
			c.w.open--
			if c.duct != nil {
				c.duct.close()
			}
		}
	}
	c.scripts = append(c.scripts, s)
	c.left++
	c.w.enable(s)
}

// String returns "client" and the client's number, as failures and the history show it.
func (c *Client) String() string { return fmt.Sprintf("client %d", c.id) }

func (c *Client) number() uint64 { return numbersOfClients | uint64(c.id) }

// Rand returns the client's own random numbers. They depend on the seed and on the client's number only, not on what else
// happens in the world.
func (c *Client) Rand() *rand.Rand { return c.draws }

// ready lets all scripts check whether they can go on.
func (c *Client) ready() {
	for _, s := range c.scripts {
		s.fire()
	}
}

// pause suspends the script until something may have changed.
func (c *Client) pause(what string) {
	s := c.w.present
	if s == nil || s.c != c || thread.ID() != c.w.thread {
		panic("sim: a Client is used outside of its script")
	}
	s.waits = what
	s.suspend()
	s.waits = ""
}

// Sleep waits until d has passed on the world's clock. It is for the client's scripts.
func (c *Client) Sleep(d time.Duration) {
	for until := c.w.now + d; c.w.now < until; {
		c.w.agenda.add(until, c.w.present)
		c.pause("a time to pass")
	}
}

// duct is what a Client sends to and receives from.
type duct interface {
	receive(p []byte) (int, error)
	send(head, p []byte) (int, error)
	close()
	localAddr() net.Addr
	peerAddr() net.Addr
}

func (c *Client) connect() error {
	var at netip.AddrPort
	var err error
	kind, to, _ := strings.Cut(c.address, ":")
	switch kind {
	case "unix":
		c.end, err = c.w.net.dialUnix(to, c)
	case "unixgram":
		c.duct, err = c.w.net.openPackets(c, place{path: fmt.Sprintf("@%05x", c.id)}, place{path: to}, true) // unix_autobind
	case "udp":
		if at, err = netip.ParseAddrPort(to); err == nil {
			c.duct, err = c.w.net.openPackets(c, place{}, place{AddrPort: at}, false)
		}
	default:
		if at, err = netip.ParseAddrPort(c.address); err == nil {
			c.end, err = c.w.net.dialTCP(at, c)
		}
	}
	switch {
	case err != nil:
		c.duct = nil // and not a *packetSocket that is nil
	case c.end != nil:
		for c.duct = c.end; !c.end.settled(); {
			c.pause("the connection")
		}
		err = c.end.takeError()
	}
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return nil
}

// CloseWrite closes the sending side: the server reads io.EOF after the last byte. The client can still read.
func (c *Client) CloseWrite() error {
	err := c.end.closeWrite()
	c.w.note(clientEnds, c, returned(0, err), 0)
	return err
}

// Abort closes the connection at once, so that the server sees a reset. Bytes that are on their way are lost.
func (c *Client) Abort() {
	c.w.note(clientAborts, c, 0, 0)
	c.end.reset()
	c.closed = true
	c.ready()
}

// Now returns the world's time as a time of day. Unlike a server's wall clock it never jumps.
func (c *Client) Now() time.Time { return epoch.Add(c.w.now) }

// socket is a Client as a net.Conn.
type socket Client

func (k *socket) client() *Client { return (*Client)(k) }

func (k *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if k.closed {
			return 0, net.ErrClosed
		}
		n, err := k.duct.receive(p)
		if err != syscall.EAGAIN {
			k.w.note(clientReads, k.client(), returned(n, err), 0)
			return n, err
		}
		if err := k.await("something to read", 0); err != nil {
			return 0, err
		}
	}
}

// Write returns when all of p is on its way.
func (k *socket) Write(p []byte) (int, error) {
	all := len(p)
	for {
		if k.closed {
			return all - len(p), net.ErrClosed
		}
		n, err := k.duct.send(nil, p)
		if err != syscall.EAGAIN {
			k.w.note(clientWrites, k.client(), returned(n, err), 0)
		}
		p = p[n:]
		switch {
		case err == syscall.EAGAIN, err == nil && len(p) > 0:
			if err := k.await("room to write", 1); err != nil {
				return all - len(p), err
			}
		default:
			return all - len(p), err
		}
	}
}

// await pauses until its deadline at most: the first is that of Read, the second that of Write.
func (k *socket) await(what string, which int) error {
	if limit := k.limit[which]; !limit.IsZero() {
		at := limit.Sub(epoch)
		if k.w.now >= at {
			return os.ErrDeadlineExceeded
		}
		k.w.agenda.add(at, k.w.present)
	}
	k.client().pause(what)
	return nil
}

func (k *socket) Close() error {
	k.w.note(clientCloses, k.client(), 0, 0)
	k.duct.close()
	k.closed = true
	k.client().ready()
	return nil
}

func (k *socket) LocalAddr() net.Addr                 { return k.duct.localAddr() }
func (k *socket) RemoteAddr() net.Addr                { return k.duct.peerAddr() }
func (k *socket) SetDeadline(at time.Time) error      { return k.setLimits(at, at) }
func (k *socket) SetReadDeadline(at time.Time) error  { return k.setLimits(at, k.limit[1]) }
func (k *socket) SetWriteDeadline(at time.Time) error { return k.setLimits(k.limit[0], at) }

func (k *socket) setLimits(read, write time.Time) error {
	k.limit = [2]time.Time{read, write}
	k.client().ready() // scripts that wait check their new deadline
	return nil
}

// excused reports whether a fault or a shutdown explains err, or the scenario excuses it.
func (c *Client) excused(err error) bool {
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	for _, e := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, syscall.ETIMEDOUT,
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENOTCONN, syscall.EAGAIN, syscall.ENOENT} {
		broken = broken || errors.Is(err, e)
	}
	faulty := c.end != nil && (c.end.c.disrupted || c.end.c.delayed || c.end.c.spared)
	return broken && (faulty || c.dropping()) || c.w.excuse != nil && c.w.excuse(c, err)
}

// dropping reports whether the server of c was told to shut down, and so may cut connections. For a connection that
// was never accepted, it reports whether any server was.
func (c *Client) dropping() bool {
	if c.end != nil {
		if f, ok := c.end.peer().holder.(*file); ok {
			return f.k.server.order != nil
		}
	}
	return slices.ContainsFunc(c.w.servers, func(v *Server) bool { return v.order != nil })
}
