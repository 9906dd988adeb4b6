package worlds_test

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldClients has one server dial another. Both sides write and read at the same time, end what they write, and read to the
// end: all bytes arrive, in order, and no more is queued than the marks allow. In some worlds a byte on its way is changed,
// lost or put in: then a side may fail, and still reads nothing that was not sent.
func TestWorldClients(t *testing.T) {
	whole, failed := 0, 0
	try(t, sim.Options{Faults: party.Gentle()}, func(w *world) {
		const address = "10.0.0.1:7007"
		d := &dialogue{world: w, spoilt: w.Rand().IntN(3) == 0, whole: &whole, failed: &failed}
		limits := [2]listener.Limits{party.Limits(w.World), party.Limits(w.World)}
		for i := range limits {
			limits[i].High = pick(w.World, limits[i].High, 1, 100_000)
			limits[i].Low = limits[i].High / 3
			d.totals[i] = cmp.Or(limits[i].High, 64<<10) + w.Rand().IntN(1<<w.Rand().IntN(17))
		}
		dials := func(s *act.Scheduler) error {
			s.Spawn(coro.New(func(co *coro.Co) error {
				c, err := coro.Dial(co, address, limits[0], d.under(secure.Client(w.client, w.handshakes)))
				if err != nil {
					return d.fails(err)
				}
				if err := co.Do(d.side(0, limits[0])(c.Under())); err != nil {
					c.Under().Abort()
					return err
				}
				return c.Close()
			}))
			return nil
		}
		tcp := &service.Listener{Address: address, Handler: d.side(1, limits[1]), Limits: limits[1], Filters: []listener.Filter{d.under(w.filters()[0])}}
		_, err := w.Server("back", party.Config(w.World), append(party.Engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		_, err = w.Server("front", party.Config(w.World), append(party.Engine(w.World), dials)...)
		require.NoError(t, err)
		w.At(2*time.Minute, func() {}) // the world waits for it, and then ends the servers
	})
	t.Logf("%d sides got everything, %d failed", whole, failed)
	party.Happened(t, "did a side get everything", whole)
	party.Happened(t, "did a side fail", failed)
}

// dialogue is what all connections of a world have in common.
type dialogue struct {
	*world
	totals        [2]int // bytes that the side that dials sends, and the other one
	spoilt        bool   // a byte of each direction is changed
	whole, failed *int   // sides, in all worlds
}

// fails takes the error of a side. There is none where no byte was changed.
func (d *dialogue) fails(err error) error {
	if *d.failed++; !d.spoilt {
		d.Errorf("%v", err)
	}
	return err
}

// side returns the handler of a side: it writes, and it reads.
func (d *dialogue) side(n int, limits listener.Limits) func(*listener.Conn) act.Action {
	return d.measured(limits, func(c *listener.Conn) act.Action {
		due := func(co *coro.Co) time.Time { return co.Scheduler().Clock().Wall().Add(time.Minute) } // a record may never be whole
		return act.All(coro.New(func(co *coro.Co) error {
			c := co.Conn(c)
			_ = c.SetWriteDeadline(due(co))
			return d.write(c, n)
		}), coro.New(func(co *coro.Co) error {
			c := co.Conn(c)
			_ = c.SetReadDeadline(due(co))
			return d.read(c, 1-n)
		}))
	})
}

// rest is a pause, now and then.
func (d *dialogue) rest(co *coro.Co) error {
	if d.Rand().IntN(20) > 0 {
		return nil
	}
	return co.Sleep(party.Below(d.Rand(), 10*time.Millisecond))
}

// says returns what side n sends.
func (d *dialogue) says(n int) []byte { return party.Noise()[n:][:d.totals[n]] }

// write writes what side n sends.
func (d *dialogue) write(c *coro.Conn, n int) error {
	for left := d.says(n); len(left) > 0; {
		p := left[:min(len(left), d.piece(n))]
		if _, err := c.Write(p); err != nil {
			return d.fails(err)
		}
		left = left[len(p):]
		if err := d.rest(c.Co()); err != nil {
			return err
		}
	}
	if err := c.CloseWrite(); err != nil {
		return d.fails(err)
	}
	return nil
}

// read compares what side n sends with what arrives.
func (d *dialogue) read(c *coro.Conn, n int) error {
	in := make([]byte, 1<<18)
	for left := d.says(n); ; {
		k, err := c.Read(in[:d.piece(n)])
		if !bytes.HasPrefix(left, in[:k]) {
			d.Errorf("after %d bytes of %d something else comes", d.totals[n]-len(left), d.totals[n])
			return nil
		}
		left = left[k:]
		switch {
		case err == io.EOF && len(left) == 0:
			*d.whole++
			return nil
		case err == io.EOF: // between two records the end of the transport is one
			return d.fails(io.ErrUnexpectedEOF)
		case err != nil:
			return d.fails(err)
		}
		if err := d.rest(c.Co()); err != nil {
			return err
		}
	}
}

// piece draws how many bytes of what side n sends are written or read at once.
func (d *dialogue) piece(n int) int {
	return d.totals[n]/100 + 1 + d.Rand().IntN(pick(d.World, 10, 2000, 150_000))
}

// under puts a spoiler below a filter.
func (d *dialogue) under(filter listener.Filter) listener.Filter {
	return func(c *listener.Conn) act.Action {
		s := &spoiler{world: d.world, at: -1}
		if r := d.Rand(); d.spoilt {
			s.at, s.how, s.by = r.IntN(pick(d.World, 10, 2000, 20_000)), r.IntN(3), byte(1+r.IntN(255))
		}
		if err := c.Wrap(func(below monitor.Stream) monitor.Stream { s.Stream = below; return s }); err != nil {
			d.Errorf("%v", err)
		}
		return filter(c)
	}
}

// spoiler is a Stream that changes one byte of what it receives, or none.
type spoiler struct {
	monitor.Stream
	world *world
	at    int // below 0: none, or it was before
	how   int
	by    byte
}

func (s *spoiler) Lend(most int) ([]byte, error) {
	p, err := s.Stream.Lend(most)
	return s.spoil(p, most), err
}

func (s *spoiler) Receive(p []byte) (int, error) {
	n, err := s.Stream.Receive(p)
	return len(s.spoil(p[:n], len(p))), err
}

func (s *spoiler) spoil(p []byte, most int) []byte {
	at := s.at
	s.at -= len(p)
	switch {
	case at < 0 || at >= len(p):
		return p
	case s.how == 1 && len(p) > 1:
		return slices.Delete(p, at, at+1)
	case s.how == 2 && len(p) < most:
		return slices.Insert(p, at, s.by)
	}
	p[at] ^= s.by
	return p
}

// CloseWrite is not called: what a side writes ends with close_notify, and answers may follow it.
func (s *spoiler) CloseWrite() error {
	s.world.Errorf("the transport's write side is closed")
	return nil
}
