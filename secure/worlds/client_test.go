package worlds_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/daimon-go/daimon/sim"
)

// wire is a sim.Client as the net.Conn below a tls.Conn. crypto/tls has mutexes, and a script that waited for one would stop
// the world. So Write never waits: it keeps the bytes, and flush sends them. Deadlines of crypto/tls, which come from the
// machine's clock, have no effect.
type wire struct {
	*sim.Client
	out     []byte
	sending bool // some script is in flush
	shaken  bool // after the handshake
	ended   bool // the transport has ended

	most int // bytes in one call
	gap  time.Duration
	left int  // bytes until the connection is cut; -1: all
	cut  bool // it was
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
	x.pause()
	n, err := x.Client.Read(p[:min(len(p), x.most)])
	x.ended = x.ended || err == io.EOF
	return n, err
}

func (x *wire) Write(p []byte) (int, error) {
	x.out = append(x.out, p...)
	return len(p), nil
}

// flush sends what was written, in pieces.
func (x *wire) flush() error {
	if x.sending {
		return nil
	}
	x.sending = true
	defer func() { x.sending = false }()
	for len(x.out) > 0 {
		n := min(len(x.out), 1+x.Rand().IntN(x.most))
		if x.left >= 0 {
			if n = min(n, x.left); n == 0 {
				x.cut = true
				return errCut
			}
			x.left -= n
		}
		if _, err := x.Client.Write(x.out[:n]); err != nil {
			return err
		}
		x.out = x.out[n:]
		x.pause()
	}
	return nil
}

// pause sleeps, most often not at all.
func (x *wire) pause() {
	if x.gap > 0 && x.Rand().IntN(4) == 0 {
		x.Sleep(time.Duration(x.Rand().Int64N(int64(x.gap))))
	}
}

func (x *wire) SetDeadline(time.Time) error      { return nil }
func (x *wire) SetReadDeadline(time.Time) error  { return nil }
func (x *wire) SetWriteDeadline(time.Time) error { return nil }

// talker is a client that speaks TLS to an echo, and knows each byte that it must get.
type talker struct {
	*wire
	tls              *tls.Conn
	salt             uint64
	total, sent, got int
}

// newTalker draws how a client behaves.
func newTalker(w *world, c *sim.Client) *talker {
	r := c.Rand()
	x := &talker{wire: &wire{Client: c, most: 1 << 20, left: -1}, salt: r.Uint64(), total: 1 << r.IntN(17)}
	x.total += r.IntN(x.total)
	switch r.IntN(8) {
	case 0: // byte by byte
		x.most, x.total = 1, min(x.total, 500)
	case 1, 2:
		x.most = max(1+r.IntN(2000), x.total/300)
	case 3:
		x.most, x.gap = max(1+r.IntN(2000), x.total/100), time.Duration(1+r.Int64N(int64(20*time.Millisecond)))
	}
	x.tls = tls.Client(x.wire, w.client)
	return x
}

// shake makes the handshake.
func (x *talker) shake() error {
	err := x.tls.Handshake()
	if x.shaken = true; err != nil {
		return fmt.Errorf("handshake: %w", unexpected(err))
	}
	if got := x.tls.ConnectionState().NegotiatedProtocol; got != "echo" {
		return fmt.Errorf("the protocol is %q", got)
	}
	return x.flush()
}

// echoes is the script of a client of an echo.
func (w *world) echoes(seen *counts) sim.Script {
	return func(c *sim.Client) error {
		x := newTalker(w, c)
		if c.Rand().IntN(3) == 0 {
			x.left = c.Rand().IntN(pick(w.World, 500, 2000, x.total+2000)) // in the handshake, or later
		}
		switch err := x.talk(seen); {
		case x.cut:
			seen.cut++
			return x.leave()
		default:
			return err
		}
	}
}

// leave ends a connection that was cut, by a reset or a close, at once or after a while.
func (x *talker) leave() error {
	x.Sleep(pickFrom(x.Rand().IntN, 0, time.Millisecond, 20*time.Second))
	if x.Rand().IntN(2) == 0 {
		x.Abort()
		return nil
	}
	return x.Close()
}

// talk waits for each answer, or writes and reads at the same time.
func (x *talker) talk(seen *counts) error {
	if err := x.shake(); err != nil {
		return err
	}
	seen.handshakes++
	if x.tls.ConnectionState().DidResume {
		seen.resumed++
	}
	if x.Rand().IntN(3) == 0 {
		return x.conversation(seen)
	}
	x.Go(func(*sim.Client) error {
		err := x.receive(x.total)
		if err == nil {
			err = x.end(seen)
		}
		if x.cut {
			return nil
		}
		return err
	})
	if err := x.send(x.total, 1); err != nil {
		return err
	}
	return x.closeWrite()
}

// conversation waits for each answer before it sends more. A question of at most ten records takes less than the smallest of
// the network's buffers: otherwise a server that waits until its answers are read might stop reading before its end.
func (x *talker) conversation(seen *counts) error {
	for x.total = min(x.total, 50_000); x.sent < x.total; {
		n := min(1+x.Rand().IntN(700), x.total-x.sent)
		if err := x.send(n, n/10+1); err != nil {
			return err
		}
		if err := x.receive(n); err != nil {
			return err
		}
	}
	if err := x.closeWrite(); err != nil {
		return err
	}
	return x.end(seen)
}

// closeWrite sends close_notify, and sometimes ends the transport's stream too.
func (x *talker) closeWrite() error {
	err := x.tls.CloseWrite()
	if err == nil {
		err = x.flush()
	}
	if err == nil && x.Rand().IntN(4) == 0 {
		err = x.Client.CloseWrite()
	}
	return err
}

// at returns byte i of what is sent.
func (x *talker) at(i int) byte { return byte((x.salt ^ uint64(i)) * 0x9E3779B97F4A7C15 >> 32) }

// send sends the next n bytes in pieces of at least so many.
func (x *talker) send(n, least int) error {
	largest := max(1<<x.Rand().IntN(16), x.total/100)
	for n > 0 {
		p := make([]byte, min(n, max(least, 1+x.Rand().IntN(largest))))
		for i := range p {
			p[i] = x.at(x.sent + i)
		}
		if _, err := x.tls.Write(p); err != nil {
			return err
		}
		if err := x.flush(); err != nil {
			return fmt.Errorf("after %d bytes: %w", x.sent, err)
		}
		x.sent += len(p)
		n -= len(p)
	}
	return nil
}

// receive receives the next n bytes.
func (x *talker) receive(n int) error {
	largest := max(1<<x.Rand().IntN(15), x.total/200)
	for n > 0 {
		p := make([]byte, min(n, 1+x.Rand().IntN(largest)))
		k, err := x.tls.Read(p)
		if err := x.compare(p[:k]); err != nil {
			return err
		}
		if n -= k; err != nil && n > 0 {
			return fmt.Errorf("with %d bytes of %d received: %w", x.got, x.total, unexpected(err))
		}
	}
	return nil
}

func (x *talker) compare(p []byte) error {
	for _, b := range p {
		if want := x.at(x.got); b != want {
			return fmt.Errorf("byte %d is %#x and not %#x", x.got, b, want)
		}
		x.got++
	}
	return nil
}

// end wants close_notify, and then the end of the transport.
func (x *talker) end(seen *counts) error {
	switch n, err := x.tls.Read(make([]byte, 1)); {
	case n > 0:
		return errors.New("there is more than was sent")
	case err != io.EOF:
		return err
	case x.ended:
		return fmt.Errorf("the server has ended the connection without close_notify: %w", io.ErrUnexpectedEOF)
	}
	switch n, err := x.Client.Read(make([]byte, 1)); {
	case n > 0:
		return errors.New("something follows close_notify")
	case err != io.EOF:
		return err
	}
	seen.whole++
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// counts counts what has happened. A scenario in which nothing happens finds nothing.
type counts struct{ handshakes, resumed, whole, cut, refused int }

func (n counts) String() string {
	return fmt.Sprintf("%d handshakes, %d of sessions resumed; %d connections served to their end, %d cut, %d refused", n.handshakes, n.resumed, n.whole,
		n.cut, n.refused)
}
