package worlds_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldDeadlines has a client that neither reads nor writes. A deadline ends the server's Read, its Write, or both at the
// same time.
func TestWorldDeadlines(t *testing.T) {
	try(t, sim.Options{}, func(w *world) {
		const address = "10.0.0.1:7007"
		both := pick(w.World, true, false)
		handler := func(c *listener.Conn) act.Action {
			reads, writes := w.ends(c, false), w.ends(c, true)
			if both {
				return act.All(reads, writes)
			}
			return pick(w.World, reads, writes)
		}
		tcp := &service.Listener{Address: address, Handler: handler, Limits: party.Limits(w.World), Filters: w.filters()}
		_, err := w.Server("server", party.Config(w.World), append(party.Engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		for range 4 {
			w.Client(address, func(c *sim.Client) error {
				x := newTalker(w, c, &counts{})
				x.Gap, x.ReadGap = 0, 0
				if err := x.shake(); err != nil {
					return err
				}
				x.Sleep(time.Minute)
				x.Abort()
				return nil
			})
		}
	})
}

// ends waits for more than the client sends or takes, until a deadline.
func (w *world) ends(under *listener.Conn, writing bool) act.Action {
	return coro.New(func(co *coro.Co) error {
		c := co.Conn(under)
		due := w.Now() + time.Second
		at := co.Scheduler().Clock().Wall().Add(time.Second)
		var err error
		if writing {
			_ = c.SetWriteDeadline(at)
			_, err = c.Write(make([]byte, 512<<10))
		} else {
			_ = c.SetReadDeadline(at)
			_, err = c.Read(make([]byte, 1))
		}
		if now := w.Now(); !errors.Is(err, os.ErrDeadlineExceeded) || now < due || now > due+10*time.Millisecond {
			w.Errorf("%v", fmt.Errorf("a deadline at %v has ended a call at %v: %w", due, now, err))
		}
		return nil
	})
}
