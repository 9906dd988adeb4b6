package party

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/daimon-go/daimon/sim"
)

// duplex is a connection whose sides are closed one by one.
type duplex interface {
	io.ReadWriter
	CloseWrite() error
}

// Echo is a client of an echo. It knows each byte that it must get.
type Echo struct {
	*Client
	Conn               duplex // the Client itself, or what encrypts over it
	Total, Said, Heard int    // bytes
	salt               uint64

	Behind func() error // checks what comes after the end of the stream; may be nil
}

// NewEcho draws how much a client says.
func NewEcho(c *Client, conn duplex) *Echo {
	r := c.Rand()
	e := &Echo{Client: c, Conn: conn, salt: r.Uint64(), Total: 1 << r.IntN(17)}
	e.Total += r.IntN(e.Total)
	return e
}

// Echoes is the script of a client that draws whether it waits for each answer, how large its pieces are, how fast it
// reads, and how it ends: by a half-close after which it reads to the end, by a close, or by a reset half-way.
func Echoes(w *sim.World) sim.Script {
	return func(c *sim.Client) error {
		x := &Client{Client: c, World: w, Manners: Draw(c.Rand())}
		e := NewEcho(x, plain{x})
		e.Fit(e.Total, e.Total)
		if c.Rand().IntN(6) > 0 {
			return e.Talk()
		}
		_ = c.SetWriteDeadline(c.Now().Add(time.Second)) // the server may stop reading
		e.Parting = From(c.Rand(), Resets, Closes)
		_ = e.Say(c.Rand().IntN(e.Total), 1)
		e.Rest(time.Second)
		e.Part()
		return nil
	}
}

// plain is a Client as a duplex.
type plain struct{ *Client }

func (x plain) Write(p []byte) (int, error) {
	if x.Send(p); x.Err != nil {
		return 0, x.Err
	}
	return len(p), nil
}

// Talk says everything and hears everything: one after the other, or both at once.
func (e *Echo) Talk() error {
	if e.Rand().IntN(3) == 0 {
		return e.converse()
	}
	e.Go(func(*sim.Client) error {
		err := e.Hear(e.Total)
		if err == nil {
			err = e.End()
		}
		if e.Cut() {
			return nil
		}
		return err
	})
	if err := e.Say(e.Total, 1); err != nil {
		return err
	}
	return e.Conn.CloseWrite()
}

// converse waits for each answer before it says more. No question is so large that the server stops reading before its end.
func (e *Echo) converse() error {
	for e.Total = min(e.Total, 50_000); e.Said < e.Total; {
		n := min(1+e.Rand().IntN(700), e.Total-e.Said)
		if err := e.Say(n, n/10+1); err != nil {
			return err
		}
		if err := e.Hear(n); err != nil {
			return err
		}
	}
	if err := e.Conn.CloseWrite(); err != nil {
		return err
	}
	return e.End()
}

// At returns byte i of the text.
func (e *Echo) At(i int) byte { return byte((e.salt ^ uint64(i)) * 0x9E3779B97F4A7C15 >> 32) }

// Next returns the next n bytes of the text.
func (e *Echo) Next(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = e.At(e.Said + i)
	}
	e.Said += n
	return p
}

// Say says the next n bytes in pieces of at least so many.
func (e *Echo) Say(n, least int) error {
	for largest := max(1<<e.Rand().IntN(16), e.Total/100); n > 0; {
		p := e.Next(min(n, max(least, 1+e.Rand().IntN(largest))))
		if _, err := e.Conn.Write(p); err != nil {
			return fmt.Errorf("after %d bytes: %w", e.Said-len(p), err)
		}
		n -= len(p)
	}
	return nil
}

// Hear hears the next n bytes.
func (e *Echo) Hear(n int) error {
	for largest := max(1<<e.Rand().IntN(15), e.Total/200); n > 0; {
		p := make([]byte, min(n, 1+e.Rand().IntN(largest)))
		k, err := e.Conn.Read(p)
		if err := e.Compare(p[:k]); err != nil {
			return err
		}
		if n -= k; err != nil && n > 0 {
			return fmt.Errorf("with %d bytes of %d received: %w", e.Heard, e.Total, Unexpected(err))
		}
	}
	return nil
}

// Compare compares the answer with the text.
func (e *Echo) Compare(p []byte) error {
	for _, b := range p {
		if want := e.At(e.Heard); b != want {
			return fmt.Errorf("byte %d is %#x and not %#x", e.Heard, b, want)
		}
		e.Heard++
	}
	return nil
}

// End wants the end of the stream.
func (e *Echo) End() error {
	switch n, err := e.Conn.Read(make([]byte, 1)); {
	case n > 0:
		return errors.New("there is more than was sent")
	case err != io.EOF:
		return err
	case e.Behind != nil:
		return e.Behind()
	}
	return nil
}
