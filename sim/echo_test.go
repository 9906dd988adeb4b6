package sim_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

func TestWorldEcho(t *testing.T) {
	sim.Test(t, func(w *sim.World) { addEcho(t, w) })
}

// addEcho adds an echo server and its clients.
func addEcho(t *testing.T, w *sim.World) {
	server := &service.TCP{Address: "10.0.0.1:7007", Handler: echo.Echo, Limits: listener.Limits{Linger: time.Hour}}
	_, err := w.Server("echo", act.Config{Schedulers: 3}, server.Setup)
	require.NoError(t, err)
	for range 20 {
		w.Client("10.0.0.1:7007", echoes)
	}
}

// echoes is the script of a client of an echo server. It knows each byte that it must get, and draws how it behaves:
// whether it waits for each answer, how large its pieces are, how fast it reads, and how it ends: by a half-close
// after which it reads to the end, by a close, or by a reset half-way.
func echoes(c *sim.Client) error {
	e := &echoed{Client: c, salt: c.Rand().Uint64(), total: 1 << c.Rand().IntN(17)}
	e.total += c.Rand().IntN(e.total)
	switch c.Rand().IntN(6) {
	case 0:
		return e.abortive()
	case 1, 2:
		return e.conversation()
	default:
		c.Go(func(*sim.Client) error {
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

type echoed struct {
	*sim.Client
	salt      uint64
	total     int
	sent, got int
}

// at returns byte i of what is sent.
func (e *echoed) at(i int) byte { return byte((e.salt ^ uint64(i)) * 0x9E3779B97F4A7C15 >> 32) }

// conversation waits for each answer before it sends more. No question is so large that the server stops reading
// before its end, since the client does not read the answer meanwhile.
func (e *echoed) conversation() error {
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

// abortive leaves in the middle, by Close or Abort, without having read anything. The server may have stopped reading
// long before.
func (e *echoed) abortive() error {
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

// piece draws the size of the largest piece. There are never more than about 200 pieces.
func (e *echoed) piece() int { return max(1<<e.Rand().IntN(15), e.total/200) }

// send sends the next n bytes in pieces.
func (e *echoed) send(n int) error {
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
func (e *echoed) receive(n int) error {
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

func (e *echoed) compare(p []byte) error {
	for _, b := range p {
		if want := e.at(e.got); b != want {
			return fmt.Errorf("byte %d is %#x and not %#x", e.got, b, want)
		}
		e.got++
	}
	return nil
}

// errMore reports that the server sends more than it received.
var errMore = errors.New("there is more than was sent")

// end waits for the end of the stream.
func (e *echoed) end() error {
	n, err := e.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errMore
	case err == io.EOF:
		return nil
	}
	return err
}

// pause sleeps, most often not at all.
func (e *echoed) pause() {
	switch e.Rand().IntN(20) {
	case 0:
		e.Sleep(time.Duration(e.Rand().Int64N(int64(time.Second))))
	case 1, 2, 3:
		e.Sleep(time.Duration(e.Rand().Int64N(int64(time.Millisecond))))
	}
}
