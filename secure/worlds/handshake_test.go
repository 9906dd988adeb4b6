package worlds_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldHandshakes has clients that stop in the middle of a handshake, speak something else, or are refused, beside others
// that are served. Nothing goes wrong but what they do.
func TestWorldHandshakes(t *testing.T) {
	h := &handshakes{}
	try(t, sim.Options{}, func(w *world) {
		h.world, h.waiting, h.crowded = w, map[*act.Scheduler][]*attempt{}, false
		h.limit, h.most = pick(w.World, time.Second, 10*time.Second), pick(w.World, 1, 2, 5, 100)
		w.handshakes.Waiting = h.most
		w.Excuse(func(*sim.Client, error) bool { return h.crowded }) // it may have been this client's
		const address = "10.0.0.1:443"
		inner := w.filters()[0]
		tcp := &service.Listener{Address: address, FilterTimeout: h.limit, Limits: party.Limits(w.World),
			Handler: func(c *listener.Conn) act.Action { h.seen.handshakes++; return echo.Echo(c) },
			Filters: []listener.Filter{func(c *listener.Conn) act.Action {
				a := &attempt{handshakes: h}
				if err := c.Wrap(func(s monitor.Stream) monitor.Stream { a.records.Stream = s; return &a.records }); err != nil {
					w.Errorf("%v", err)
				}
				a.Child = act.Child{Action: inner(c)}
				return a
			}}}
		_, err := w.Server("server", party.Config(w.World), append(party.Engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		for range 12 {
			client := pick(w.World, h.stalls, h.stalls, h.speaksHTTP, h.isForeign, h.isRefused, h.spoils, h.isServed, h.isServed)
			w.At(time.Duration(w.Rand().Int64N(int64(pick(w.World, time.Millisecond, 2*time.Second)))), func() { w.Client(address, client) })
		}
	})
	t.Log(h.seen, h.dropped, "dropped")
	party.Happened(t, "was a handshake given up for another", h.dropped)
	party.Happened(t, "was a client refused", h.seen.refused)
}

// handshakes is a world of TestWorldHandshakes, and counts over all worlds.
type handshakes struct {
	*world
	limit   time.Duration
	most    int
	waiting map[*act.Scheduler][]*attempt // the first has waited for its peer for longest
	crowded bool                          // a handshake of this world was given up for another one
	seen    counts
	dropped int
}

// attempt is a handshake at the server. It checks how long it takes, and whether it is given up when it has to be: one more
// than may be under way ends the one that has waited for its peer for longest.
type attempt struct {
	act.Child
	*handshakes
	records records
	on      *act.Scheduler // nil: not begun
	begun   time.Duration
	doomed  time.Duration // since when it has to be given up; 0: it has not
	over    bool
}

func (a *attempt) Act(t *act.Task) act.Directive {
	if a.on == nil {
		a.on, a.begun = t.Scheduler(), a.Now()
		a.wait()
		if all := a.waiting[a.on]; len(all) > a.most {
			all[0].doomed, a.crowded = a.Now(), true
			all[0].leave()
		}
	}
	before := a.records.whole
	d := a.Child.Act(t)
	gaveUp := d == act.Failed && errors.Is(t.Err(), secure.ErrTooMany)
	if gaveUp != (a.doomed > 0) {
		a.Errorf("a handshake was given up: %v; it has to be since %v", gaveUp, a.doomed)
	}
	switch {
	case gaveUp:
		a.dropped++
		a.end()
	case d.Finished():
		a.end()
	case a.records.whole > before: // a step was made, and it waits anew
		a.leave()
		a.wait()
	}
	return d
}

func (a *attempt) Close() error {
	a.end()
	return a.Child.Close()
}

func (a *attempt) Abandon() act.Action {
	a.end()
	return a.Child.Abandon()
}

func (a *attempt) end() {
	if a.over || a.on == nil {
		return
	}
	a.over = true
	a.leave()
	if took := a.Now() - a.begun; took > a.limit+time.Millisecond {
		a.Errorf("a handshake took %v", took)
	}
	if a.doomed > 0 && a.Now() > a.doomed+time.Millisecond {
		a.Errorf("a handshake was given up %v after there were too many", a.Now()-a.doomed)
	}
}

// wait puts a after the ones that wait already.
func (a *attempt) wait() { a.waiting[a.on] = append(a.waiting[a.on], a) }

func (a *attempt) leave() {
	a.waiting[a.on] = slices.DeleteFunc(a.waiting[a.on], func(b *attempt) bool { return a == b })
}

// records is a Stream that counts the records of TLS that have been received whole.
type records struct {
	monitor.Stream
	head  []byte
	left  int
	whole int
}

func (r *records) Lend(most int) ([]byte, error) {
	p, err := r.Stream.Lend(most)
	r.pass(p)
	return p, err
}

func (r *records) Receive(p []byte) (int, error) {
	n, err := r.Stream.Receive(p)
	r.pass(p[:n])
	return n, err
}

func (r *records) pass(p []byte) {
	for _, b := range p {
		if r.left > 0 {
			r.left--
		} else if r.head = append(r.head, b); len(r.head) == 5 {
			r.left = int(r.head[3])<<8 | int(r.head[4])
		} else {
			continue
		}
		if r.left == 0 {
			r.head = r.head[:0]
			r.whole++
		}
	}
}

// stalls sends a part of what a handshake takes, and waits for the server to give up.
func (h *handshakes) stalls(c *sim.Client) error {
	x := newTalker(h.world, c, &h.seen)
	x.Stop = c.Rand().IntN(party.From(c.Rand(), 10, 1500))
	begun := h.Now()
	err := x.tls.Handshake()
	if err == nil {
		err = x.wire.flush()
	}
	if !x.Cut() {
		return err
	}
	_ = c.SetReadDeadline(c.Now().Add(time.Minute))
	_, err = io.Copy(io.Discard, c)
	switch took := h.Now() - begun; {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case took < h.limit && !h.crowded || took > h.limit+time.Second:
		return fmt.Errorf("a handshake that stopped was given up after %v: %w", took, err)
	}
	return nil
}

func (h *handshakes) isServed(c *sim.Client) error {
	x := newTalker(h.world, c, &h.seen)
	x.Gap, x.ReadGap, x.Total = 0, 0, min(x.Total, 5000)
	return x.talk(&h.seen)
}

func (h *handshakes) speaksHTTP(c *sim.Client) error {
	answer, err := party.Ask(c, party.From(c.Rand(), "GET", "POST", "PRI")+" / HTTP/1.1\r\nHost: example\r\n\r\n")
	if err == nil && !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
		err = fmt.Errorf("the answer to HTTP is %q", answer)
	}
	return h.refused(err)
}

func (h *handshakes) isForeign(c *sim.Client) error {
	answer, err := party.Ask(c, party.From(c.Rand(), "\x00\x01\x02", "\n", "ssh", "\x80\x2e\x01\x00\x02"))
	if err == nil && answer != "" {
		err = fmt.Errorf("the answer to something else is %q", answer)
	}
	return h.refused(err)
}

// spoils sends a record that is none.
func (h *handshakes) spoils(c *sim.Client) error {
	answer, err := party.Ask(c, party.From(c.Rand(), "\x16\x03\x01\x00\x04\x02\x00\x00\x00", "\x16\x03\x01\xff\xff", "\x16\x03\x03\x00\x00"))
	if err == nil && (len(answer) != 7 || answer[0] != 21) {
		err = fmt.Errorf("the answer to a spoiled handshake is %q and no alert", answer)
	}
	return h.refused(err)
}

// isRefused speaks no protocol that the server speaks.
func (h *handshakes) isRefused(c *sim.Client) error {
	x := &wire{Client: &party.Client{Client: c, World: h.World, Manners: party.Prompt}}
	config := h.client.Clone()
	config.NextProtos, config.ClientSessionCache = []string{"nothing"}, nil
	peer := tls.Client(x, config)
	err := peer.Handshake()
	if err == nil || !strings.Contains(err.Error(), "no application protocol") {
		return fmt.Errorf("the client was not told why it is refused: %w", err)
	}
	_, err = io.Copy(io.Discard, c)
	return h.refused(err)
}

func (h *handshakes) refused(err error) error {
	if err == nil {
		h.seen.refused++
	}
	return err
}
