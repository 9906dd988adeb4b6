package sim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Echo is the script of a client of an echo server. It knows byte by byte what it must get, and draws how it
// behaves: questions and answers or a stream, in large pieces or small, reading fast or slowly or with pauses,
// ended by a half-close and read to the end, closed, or aborted half-way.
func Echo(c *Client) error {
	e := &echo{Client: c, salt: c.Rand().Uint64(), total: 1 << c.Rand().IntN(17)}
	e.total += c.Rand().IntN(e.total)
	switch c.Rand().IntN(6) {
	case 0:
		return e.abortive()
	case 1, 2:
		return e.conversation()
	default:
		c.Go(func(*Client) error {
			if err := e.receive(e.total); err != nil {
				return err
			}
			return e.end()
		})
		if err := e.send(e.total); err != nil {
			return err
		}
		return c.CloseWrite()
	}
}

type echo struct {
	*Client
	salt      uint64
	total     int
	sent, got int
}

// at is byte i of what is sent.
func (e *echo) at(i int) byte { return byte(mix(e.salt^uint64(i)) >> 32) }

// conversation waits for the answer before the next question. No question is so large that the server might stop
// reading before its end: nobody reads the answer meanwhile.
func (e *echo) conversation() error {
	e.total = min(e.total, 50_000)
	for e.sent < e.total {
		n := min(1+e.Rand().IntN(1000), e.total-e.sent)
		if err := e.send(n); err != nil {
			return err
		}
		if err := e.receive(n); err != nil {
			return err
		}
		e.pause()
	}
	if err := e.CloseWrite(); err != nil {
		return err
	}
	return e.end()
}

// abortive goes away in the middle, one way or the other, and has read nothing: the server may have stopped
// reading long before.
func (e *echo) abortive() error {
	_ = e.SetWriteDeadline(e.Now().Add(time.Second))
	if err := e.send(e.Rand().IntN(e.total)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	e.pause()
	if e.Rand().IntN(2) == 0 {
		return e.Close()
	}
	e.Abort()
	return nil
}

// piece draws how large pieces are, but not so small that there are too many.
func (e *echo) piece() int { return max(1<<e.Rand().IntN(15), e.total/200) }

// send sends the next n bytes in pieces.
func (e *echo) send(n int) error {
	largest := e.piece()
	for n > 0 {
		p := make([]byte, min(n, 1+e.Rand().IntN(largest)))
		for i := range p {
			p[i] = e.at(e.sent + i)
		}
		if _, err := e.Write(p); err != nil {
			return fmt.Errorf("after %d bytes: %w", e.sent, err)
		}
		e.sent += len(p)
		n -= len(p)
		e.pause()
	}
	return nil
}

// receive receives the next n bytes.
func (e *echo) receive(n int) error {
	largest := e.piece()
	slow := e.Rand().IntN(4) == 0
	for n > 0 {
		p := make([]byte, min(n, 1+e.Rand().IntN(largest)))
		k, err := e.Read(p)
		if err := e.compare(p[:k]); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("with %d bytes of %d received: %w", e.got, e.total, unexpected(err))
		}
		n -= k
		if slow {
			e.pause()
		}
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (e *echo) compare(p []byte) error {
	for _, b := range p {
		if want := e.at(e.got); b != want {
			return fmt.Errorf("byte %d is %#x and not %#x", e.got, b, want)
		}
		e.got++
	}
	return nil
}

// errMore is a server that says more than it was told.
var errMore = errors.New("there is more than was sent")

// end waits for the end of the stream.
func (e *echo) end() error {
	n, err := e.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errMore
	case err == io.EOF:
		return nil
	}
	return err
}

// pause lets some time pass, most often none.
func (e *echo) pause() {
	switch e.Rand().IntN(20) {
	case 0:
		e.Sleep(time.Duration(e.Rand().Int64N(int64(time.Second))))
	case 1, 2, 3:
		e.Sleep(time.Duration(e.Rand().Int64N(int64(time.Millisecond))))
	}
}
