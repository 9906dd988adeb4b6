package worlds_test

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldDialled has tasks of one server that dial another, with TLS on both sides. What they send comes back while the write
// side of either is open or closed, and a close is seen as such.
func TestWorldDialled(t *testing.T) {
	t.Run("calm", func(t *testing.T) { testDialled(t, sim.Options{}) })
	t.Run("stormy", func(t *testing.T) { testDialled(t, sim.Options{Faults: sim.Anything()}) })
}

func testDialled(t *testing.T, o sim.Options) {
	whole := 0
	try(t, o, func(w *world) {
		const address = "10.0.0.1:7007"
		v := &dialled{world: w, limits: patient(w.World), answers: pick(w.World, -1, -1, 0, 5000),
			served: map[string]bool{}, stormy: o.Faults != sim.Faults{}, whole: &whole}
		back := &service.TCP{Address: address, Handler: v.measured(v.limits, v.answer), Limits: v.limits, MaxConns: pick(w.World, 0, 0, 3),
			Filters: w.filters(), FilterTimeout: time.Hour}
		diallers := func(s *act.Scheduler) error {
			for range 3 {
				limits := patient(w.World)
				d := &peer{dialled: v, first: true, total: 1 + w.Rand().IntN(pick(w.World, 1, 100, 40_000)), dial: &listener.Connect{
					Address: address, Limits: limits, FilterTimeout: time.Hour, Filters: []listener.Filter{secure.Client(w.client, w.handshakes)}}}
				v.diallers = append(v.diallers, d)
				s.Spawn(d)
			}
			return nil
		}
		b, err := w.Server("back", config(w.World), append(engine(w.World), back.Setup)...)
		require.NoError(t, err)
		f, err := w.Server("front", config(w.World), append(engine(w.World), diallers)...)
		require.NoError(t, err)
		endsSometimes(w.World, pick(w.World, b, f), func() { v.ordered = true })
		w.At(59*time.Second, func() { v.ordered = true }) // the world waits for it, and then ends the servers
	})
	t.Logf("%d connections served to their end", whole)
	require.Positive(t, whole)
}

// dialled is one world.
type dialled struct {
	*world
	limits   listener.Limits
	diallers []*peer
	answers  int             // what the accepting side sends; -1: as many bytes as it gets
	served   map[string]bool // diallers, by address, whose handshake the accepting side has finished
	stormy   bool
	ordered  bool
	whole    *int
}

// answer is the handler.
func (v *dialled) answer(c *listener.Conn) act.Action {
	v.served[c.RemoteAddr().String()] = true
	return &peer{dialled: v, c: c, total: v.answers}
}

// peer is either side of a connection. It sends bytes that both know, ends its write side, and reads to the end. The
// accepting side does not know how many come. In some worlds it sends as many, and in others it is often the first to end its
// write side.
type peer struct {
	*dialled
	dial      *listener.Connect // nil: the accepting side
	c         *listener.Conn
	first     bool
	total     int // to send; -1: as many as it gets
	sent, got int
	closed    bool // its write side
	ended     bool // the peer's
}

func (p *peer) Act(t *act.Task) act.Directive {
	if p.c == nil {
		if d := p.dial.Act(t); d != act.Done {
			return p.judge(d, t.Err())
		}
		p.c = p.dial.Conn()
		if state, ok := secure.State(p.c); !ok || state.NegotiatedProtocol != "echo" || len(state.PeerCertificates) != 1 {
			p.Errorf("the state of a dialled connection is %+v", state)
		}
	}
	blocked, err := p.write()
	if err == nil {
		err = p.read()
	}
	if b, ok := err.(act.Blocked); ok {
		if blocked != nil {
			blocked.Arm(t)
		}
		b.Arm(t)
		return act.Wait
	}
	if err == nil && blocked != nil && p.ended {
		blocked.Arm(t)
		return act.Wait
	}
	switch {
	case err != nil:
		return p.judge(t.Fail(err), err)
	case !p.ended || !p.closed:
		return act.Yield
	}
	if p.dial != nil {
		if want := p.answers; p.got != want && (want >= 0 || p.got != p.total) {
			return p.judge(t.Fail(io.ErrUnexpectedEOF), io.ErrUnexpectedEOF)
		}
		*p.whole++
		_ = p.c.Close()
	}
	return act.Done
}

// write sends what it may, and returns what it waits for.
func (p *peer) write() (act.Blocked, error) {
	most := p.total
	if most < 0 {
		most = p.got
	}
	for p.sent < most {
		b := make([]byte, min(most-p.sent, 1+p.Rand().IntN(3000)))
		for i := range b {
			b[i] = p.at(p.sent+i, p.first)
		}
		n, err := p.c.Write(b)
		p.sent += n
		if blocked, ok := err.(act.Blocked); ok {
			return blocked, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if !p.closed && (p.total >= 0 || p.ended) {
		p.closed = true
		return nil, p.c.CloseWrite()
	}
	return nil, nil
}

// read reads what has come.
func (p *peer) read() error {
	if p.ended {
		return nil
	}
	in, err := p.c.Peek(1)
	for _, b := range in {
		if want := p.at(p.got, !p.first); b != want {
			p.Errorf("byte %d is %#x and not %#x", p.got, b, want)
		}
		p.got++
	}
	p.c.Discard(len(in))
	if err == io.EOF {
		p.ended = true
		return nil
	}
	return err
}

// at returns byte i of those of one side.
func (p *peer) at(i int, first bool) byte {
	if first {
		i++
	}
	return byte(uint64(i) * 0x9E3779B97F4A7C15 >> 32)
}

// judge says whether a dialler may have failed.
func (p *peer) judge(d act.Directive, err error) act.Directive {
	if d != act.Failed || p.dial == nil {
		return d
	}
	if !p.ordered && !p.excused(err) {
		p.Errorf("a dialler has sent %d bytes of %d, and got %d: %v", p.sent, p.total, p.got, err)
	}
	return act.Done
}

// excused reports whether a fault may be the cause. Some of them look like an orderly end while the handshake is made, which
// the accepting side finishes last.
func (p *peer) excused(err error) bool {
	all := []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, syscall.ETIMEDOUT, syscall.ENETUNREACH,
		syscall.EHOSTUNREACH, syscall.ENOTCONN, syscall.ENOMEM, syscall.ENOSPC}
	if p.c == nil || !p.served[p.c.LocalAddr().String()] {
		all = append(all, io.EOF, io.ErrUnexpectedEOF)
	}
	return p.stormy && slices.ContainsFunc(all, func(e error) bool { return errors.Is(err, e) })
}

func (p *peer) Stop(t *act.Task, o shutdown.Order) {
	if p.dial != nil {
		p.dial.Stop(t, o)
	}
}

func (p *peer) Abandon() act.Action {
	if p.dial == nil {
		return nil
	}
	return p.dial.Abandon()
}

func (p *peer) String() string { return "peer" }

func (p *peer) Close() error {
	if p.dial == nil {
		return nil
	}
	if p.c != nil {
		p.c.Abort()
	}
	return p.dial.Close()
}
