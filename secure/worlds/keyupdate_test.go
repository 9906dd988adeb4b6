package worlds_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/internal/testing/tlstest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldKeyUpdates has clients ask for new keys all the time, which crypto/tls answers when it reads. One that does not read
// the answers is not read from either.
func TestWorldKeyUpdates(t *testing.T) {
	held, whole := 0, 0
	try(t, sim.Options{}, func(w *world) {
		const address = "10.0.0.1:7007"
		w.client.MaxVersion = 0
		limits := party.Limits(w.World)
		limits.High, limits.Low = pick(w.World, 1000, 1000, limits.High), min(limits.Low, 500) // often so little that nothing is decrypted
		most := cmp.Or(limits.High, 64<<10)
		behind := most + 16<<10 + 4<<10 // the bound for what crypto/tls answers, and what a turn adds
		behind += behind/1000*32 + 1000
		answers, got := pick(w.World, false, true), 0
		handler := func(c *listener.Conn) act.Action {
			a := echo.Echo(c)
			if !answers {
				a = sink(c, &got)
			}
			return &watched{Child: act.Child{Action: a}, after: func() {
				switch n := c.Queued(); {
				case n > behind:
					w.Errorf("%d bytes are queued, %d is the bound", n, behind)
				case n > most+16<<10:
					held++
				}
			}}
		}
		tcp := &service.Listener{Address: address, Handler: handler, Limits: limits, Filters: w.filters()}
		_, err := w.Server("server", party.Config(w.World), append(party.Engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		w.Client(address, func(c *sim.Client) error { return w.updates(c, answers, &got, &whole) })
	})
	t.Logf("%d connections served to their end; nothing was decrypted %d times", whole, held)
	party.Happened(t, "was nothing decrypted", held)
	party.Happened(t, "was a connection served to its end", whole)
}

// sink reads to the end, and answers nothing.
func sink(c *listener.Conn, got *int) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		*got += len(in)
		c.Discard(len(in))
		return c.Next(t, err)
	})
}

// updates is a client that writes records of its own: data, and demands for new keys. It begins to read at once, or after a
// while.
func (w *world) updates(c *sim.Client, answers bool, got, whole *int) error {
	x := newTalker(w, c, &counts{})
	x.Manners = party.Prompt
	secrets := &bytes.Buffer{}
	cfg := w.client.Clone()
	cfg.KeyLogWriter = secrets
	x.tls = tls.Client(x.wire, cfg)
	if err := x.shake(); err != nil {
		return err
	}
	out, err := tlstest.NewSealer(x.tls.ConnectionState(), secrets.String())
	if err != nil {
		return err
	}
	if c.Rand().IntN(3) == 0 {
		return x.demandsOnce(out)
	}
	c.Go(func(*sim.Client) error {
		c.Sleep(party.From(c.Rand(), 0, 10*time.Second, 10*time.Second))
		if !answers { // crypto/tls reads no more than 16 new keys in a row
			_, err := io.Copy(io.Discard, c)
			if err == nil && *got != x.Said {
				err = fmt.Errorf("%d bytes of %d have arrived", *got, x.Said)
			}
			*whole++
			return err
		}
		*whole++
		in, err := io.ReadAll(x.tls)
		if err := x.Compare(in); err != nil {
			return err
		}
		if err == nil && (x.Lost == io.EOF || x.Heard != x.Said) {
			err = fmt.Errorf("the server has ended the connection after %d bytes of %d", x.Heard, x.Said)
		}
		return err
	})
	for range 100 + c.Rand().IntN(400) {
		p := x.Next(1 + c.Rand().IntN(party.From(c.Rand(), 1, 100)))
		x.wire.out = append(x.wire.out, out.Record(tlstest.Data, p, 0)...)
		for range c.Rand().IntN(15) { // 16 in a row are an error
			x.wire.out = append(x.wire.out, out.KeyUpdate(c.Rand().IntN(8) > 0)...)
		}
		if err := x.wire.flush(); err != nil {
			return err
		}
	}
	x.wire.out = append(x.wire.out, out.Record(tlstest.Alert, tlstest.CloseNotify, 0)...)
	return x.wire.flush()
}

// demandsOnce wants an answer although the server has nothing to say.
func (x *talker) demandsOnce(out *tlstest.Sealer) error {
	_ = x.SetReadDeadline(x.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, x.wire.Client) // the tickets
	x.wire.out = append(x.wire.out, out.KeyUpdate(true)...)
	if err := x.wire.flush(); err != nil {
		return err
	}
	_ = x.SetReadDeadline(x.Now().Add(time.Second))
	if n, err := x.wire.Client.Read(make([]byte, 100)); n == 0 {
		return fmt.Errorf("the server has not answered a demand for new keys: %w", err)
	}
	x.Abort()
	return nil
}
