package worlds_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/sim"
)

// wire is a client as the net.Conn below a tls.Conn. crypto/tls has mutexes, and a script that waited for one would stop the
// world. So Write never waits: it keeps the bytes, and flush sends them. Deadlines of crypto/tls, which come from the
// machine's clock, have no effect.
type wire struct {
	*party.Client
	out     []byte
	sending bool // some script is in flush
	shaken  bool // after the handshake
}

var errCut = errors.New("the client has cut the connection")

func (x *wire) Read(p []byte) (int, error) {
	if len(x.out) > 0 && !x.sending {
		if !x.shaken {
			if err := x.flush(); err != nil {
				return 0, err
			}
		} else { // an answer of crypto/tls; the server may not take it before more was read
			x.Go(func(*sim.Client) error {
				if err := x.flush(); err != errCut && !errors.Is(err, net.ErrClosed) {
					return err
				}
				return nil
			})
		}
	}
	return x.Client.Read(p)
}

func (x *wire) Write(p []byte) (int, error) {
	x.out = append(x.out, p...)
	return len(p), nil
}

// flush sends what was written, up to where the client cuts the connection.
func (x *wire) flush() error {
	if x.sending {
		return nil
	}
	x.sending = true
	defer func() { x.sending = false }()
	for len(x.out) > 0 {
		p := x.out
		x.out = nil
		if !x.Send(p) {
			if x.Cut() {
				return errCut
			}
			return x.Err
		}
	}
	return nil
}

func (x *wire) SetDeadline(time.Time) error      { return nil }
func (x *wire) SetReadDeadline(time.Time) error  { return nil }
func (x *wire) SetWriteDeadline(time.Time) error { return nil }

// talker is a client that speaks TLS to an echo.
type talker struct {
	*party.Echo
	wire *wire
	tls  *tls.Conn
}

// newTalker draws how a client behaves.
func newTalker(w *world, c *sim.Client, seen *counts) *talker {
	x := &talker{wire: &wire{Client: &party.Client{Client: c, World: w.World, Manners: party.Draw(c.Rand())}}}
	x.tls = tls.Client(x.wire, w.client)
	x.Echo = party.NewEcho(x.wire.Client, secret{x})
	x.Behind = func() error { return x.end(seen) }
	x.Fit(x.Total, x.Total)
	if c.Rand().IntN(8) == 0 { // byte by byte
		x.Manners = party.Manners{Most: 1, ReadMost: 1, Stop: -1}
		x.Total = min(x.Total, 500)
	}
	return x
}

// secret is the connection that a talker speaks over.
type secret struct{ *talker }

func (x secret) Read(p []byte) (int, error) { return x.tls.Read(p) }

func (x secret) Write(p []byte) (int, error) {
	if _, err := x.tls.Write(p); err != nil {
		return 0, err
	}
	return len(p), x.wire.flush()
}

// CloseWrite sends close_notify, and sometimes ends the transport's stream too.
func (x secret) CloseWrite() error {
	err := x.tls.CloseWrite()
	if err == nil {
		err = x.wire.flush()
	}
	if err == nil && x.Rand().IntN(4) == 0 {
		err = x.wire.Client.CloseWrite()
	}
	return err
}

// shake makes the handshake.
func (x *talker) shake() error {
	err := x.tls.Handshake()
	if x.wire.shaken = true; err != nil {
		return fmt.Errorf("handshake: %w", party.Unexpected(err))
	}
	if got := x.tls.ConnectionState().NegotiatedProtocol; got != "echo" {
		return fmt.Errorf("the protocol is %q", got)
	}
	return x.wire.flush()
}

// echoes is the script of a client of an echo.
func (w *world) echoes(seen *counts) sim.Script {
	return func(c *sim.Client) error {
		x := newTalker(w, c, seen)
		if c.Rand().IntN(3) == 0 {
			x.Stop = c.Rand().IntN(party.From(c.Rand(), 500, 2000, x.Total+2000)) // in the handshake, or later
		}
		err := x.talk(seen)
		if !x.Cut() {
			return err
		}
		seen.cut++
		x.Sleep(party.From(c.Rand(), 0, time.Millisecond, 20*time.Second))
		x.Parting = party.From(c.Rand(), party.Resets, party.Closes)
		x.Part()
		return nil
	}
}

// talk makes the handshake, has everything echoed, and wants close_notify and then the end of the transport.
func (x *talker) talk(seen *counts) error {
	if err := x.shake(); err != nil {
		return err
	}
	seen.handshakes++
	if x.tls.ConnectionState().DidResume {
		seen.resumed++
	}
	return x.Talk()
}

// end wants the end of the transport after close_notify.
func (x *talker) end(seen *counts) error {
	if x.Lost == io.EOF {
		return fmt.Errorf("the server has ended the connection without close_notify: %w", io.ErrUnexpectedEOF)
	}
	switch n, err := x.wire.Client.Read(make([]byte, 1)); {
	case n > 0:
		return errors.New("something follows close_notify")
	case err != io.EOF:
		return err
	}
	seen.whole++
	return nil
}

// counts counts what has happened. A scenario in which nothing happens finds nothing.
type counts struct{ handshakes, resumed, whole, cut, refused int }

func (n counts) String() string {
	return fmt.Sprintf("%d handshakes, %d of sessions resumed; %d connections served to their end, %d cut, %d refused", n.handshakes, n.resumed, n.whole,
		n.cut, n.refused)
}
