package worlds_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
)

// TestWorldFilterModel has two filters talk over Streams that move random pieces, and would block at random. All bytes arrive, in
// order; no more is queued than the marks allow; and whenever nothing moves any more, both sides have come to their end. In
// some runs a byte on its way is changed, lost or put in: then a side may fail, and still reads nothing that was not sent.
// SIM_SEEDS, SIM_FROM and SIM_SEED select the runs, as those of worlds.
func TestWorldFilterModel(t *testing.T) {
	identity := certificate(t)
	from, n := number(t, "SIM_FROM"), number(t, "SIM_SEEDS")
	if os.Getenv("SIM_SEED") != "" {
		from, n = number(t, "SIM_SEED"), 1
	}
	for seed := from; seed < from+n; seed++ {
		cryptotest.SetGlobalRandom(t, seed)
		m := newModel(t, rand.New(rand.NewPCG(seed, 1)), identity)
		if err := m.run(); err != nil {
			t.Fatalf("%v\n  seed %d: client %v, server %v\nto repeat this run:\n  SIM_SEED=%[2]d go test -run '^TestWorldFilterModel$' .", err, seed, m.sides[0], m.sides[1])
		}
	}
}

func number(t *testing.T, name string) uint64 {
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), "0"), 10, 64)
	require.NoError(t, err, "%s is not a number", name)
	return n
}

// model is one run.
type model struct {
	*rand.Rand
	s      *act.Scheduler
	pipes  [2]pipe // from each side to the other
	sides  [2]*side
	spoilt bool // a byte is changed
	broken bool // the transport has ended, since nothing moved any more
}

// still is a clock that stands still.
type still struct{}

func (still) Monotonic() time.Duration { return time.Hour }
func (still) Wall() time.Time          { return birth }

func newModel(t *testing.T, r *rand.Rand, identity tls.Certificate) *model {
	m := &model{Rand: r, s: act.New(act.Config{Clock: still{}, Logger: zap.NewNop()})}
	server, client := configs(r.IntN, identity, still{}.Wall)
	h := &secure.Handshakes{OnReactor: true}
	if m.spoilt = r.IntN(3) == 0; m.spoilt {
		m.pipes[r.IntN(2)].change = &change{at: r.IntN(pickFrom(r.IntN, 10, 2000, 20_000)), how: r.IntN(3), by: byte(1 + r.IntN(255))}
	}
	for i := range m.sides {
		high := pickFrom(r.IntN, 0, 1, 1000, 20_000, 200_000)
		limits := listener.Limits{Read: pickFrom(r.IntN, 0, 10, 100, 5000), High: high, Low: high / 3}
		filter := secure.Client(client, h)
		if i == 1 {
			filter = secure.Server(server, h)
		}
		c := listener.NewConn(m.s, &end{m: m, in: &m.pipes[1-i], out: &m.pipes[i]}, limits)
		x := &side{m: m, c: c, filter: listener.Filtered(c, 0, filter), salt: byte(i), total: high + 1<<r.IntN(17), most: cmp.Or(high, 64<<10)}
		x.total += r.IntN(x.total)
		m.sides[i] = x
		m.s.Spawn(x)
	}
	return m
}

// run runs until both sides have ended.
func (m *model) run() (err error) {
	runtime.LockOSThread() // coroutines stay on their thread
	defer runtime.UnlockOSThread()
	defer func() { _ = m.s.Close() }()
	for range 5_000_000 {
		turns := 0
		switch m.IntN(3) {
		case 0:
			turns, err = m.s.Step(1 + m.IntN(4))
		case 1, 2:
			m.pipes[m.IntN(2)].move(m.IntN(pickFrom(m.IntN, 2, 100, 100_000)))
		}
		for i, x := range m.sides {
			if x.failed != nil && !m.spoilt {
				return x.failed
			}
			if x.err != nil || err != nil {
				return cmp.Or(x.err, err)
			}
			m.pipes[i].queued(x)
		}
		if turns == 0 && m.atRest() {
			if turns, err = m.s.Step(100); err != nil || turns > 0 || !m.atRest() {
				continue
			}
			if m.sides[0].over && m.sides[1].over {
				return nil
			}
			if !m.wake() && !m.breakOff() {
				return fmt.Errorf("nothing moves any more, but not all has arrived")
			}
		}
	}
	return fmt.Errorf("it does not end")
}

// breakOff ends the transport, once, where a byte was changed: a side may wait for the rest of a record.
func (m *model) breakOff() bool {
	if !m.spoilt || m.broken {
		return false
	}
	m.broken = true
	for i := range m.pipes {
		m.pipes[i].ended = true
		m.pipes[i].move(0)
	}
	return true
}

// atRest reports whether nothing is on its way.
func (m *model) atRest() bool {
	return len(m.pipes[0].queue)+len(m.pipes[1].queue) == 0 && m.pipes[0].ended == m.pipes[0].endArrived && m.pipes[1].ended == m.pipes[1].endArrived
}

// wake wakes a side that pauses.
func (m *model) wake() bool {
	for _, x := range m.sides {
		if x.pauses && !x.over {
			x.pauses = false
			x.waker.Wake()
			return true
		}
	}
	return false
}

// pipe is one direction.
type pipe struct {
	queue   []byte // was sent
	arrived []byte // was not received

	ended, endArrived bool
	reader            act.Waker
	writers           []waiting
	change            *change // nil: none
}

// change changes one byte.
type change struct {
	at, how int
	by      byte
}

// apply returns in as it arrives.
func (c *change) apply(in []byte) []byte {
	if c == nil || c.at < 0 || c.at >= len(in) {
		if c != nil {
			c.at -= len(in)
		}
		return in
	}
	out, at := slices.Clone(in), c.at
	switch c.at = -1; c.how {
	case 0:
		out[at] ^= c.by
	case 1:
		return slices.Delete(out, at, at+1)
	case 2:
		return slices.Insert(out, at, c.by)
	}
	return out
}

// waiting is a task that waits for room.
type waiting struct {
	act.Waker
	low int
}

// move moves n bytes of the queue, and the end behind the last.
func (p *pipe) move(n int) {
	n = min(n, len(p.queue))
	p.arrived, p.queue = append(p.arrived, p.change.apply(p.queue[:n])...), p.queue[n:]
	p.endArrived = p.ended && len(p.queue) == 0
	if n > 0 || p.endArrived {
		p.reader.Wake()
	}
	p.writers = slices.DeleteFunc(p.writers, func(w waiting) bool {
		if len(p.queue) > w.low {
			return false
		}
		w.Wake()
		return true
	})
}

// queued checks how much is queued.
func (p *pipe) queued(x *side) {
	most := x.most + 4<<10
	if most += most/1000*32 + 100; len(p.queue) > most && x.err == nil {
		x.err = fmt.Errorf("%d bytes are queued, %d is the bound", len(p.queue), most)
	}
}

// end is one end of the pipes, as a monitor.Stream.
type end struct {
	m       *model
	in, out *pipe
}

func (e *end) Lend(most int) ([]byte, error) {
	p := make([]byte, most)
	n, err := e.Receive(p)
	return p[:n], err
}

func (e *end) Receive(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		panic("Receive into nothing")
	case len(e.in.arrived) > 0 && e.m.IntN(10) > 0:
		n := copy(p[:1+e.m.IntN(len(p))], e.in.arrived)
		e.in.arrived = e.in.arrived[n:]
		return n, nil
	case len(e.in.arrived) == 0 && e.in.endArrived:
		return 0, io.EOF
	}
	return 0, monitor.ErrWouldBlock
}

func (e *end) Send(head, p []byte, high int) (int, error) {
	if e.out.ended {
		return 0, syscall.EPIPE
	}
	if len(head) > 72<<10 {
		e.m.sides[0].err = fmt.Errorf("%d bytes were encrypted before any was sent", len(head))
	}
	e.out.queue = append(e.out.queue, head...)
	if e.m.IntN(2) == 0 {
		e.out.move(e.m.IntN(1 + len(head) + len(p)))
	}
	n := max(0, min(len(p), high-len(e.out.queue)))
	e.out.queue = append(e.out.queue, p[:n]...)
	return n, nil
}

func (e *end) Queued() (int, error) {
	if e.out.ended {
		return len(e.out.queue), syscall.EPIPE
	}
	return len(e.out.queue), nil
}

func (e *end) AwaitInput(w act.Waker) {
	e.in.reader = w
	if len(e.in.arrived) > 0 || e.in.endArrived {
		w.Wake()
	}
}

func (e *end) AwaitOutput(w act.Waker, low int) {
	e.out.writers = append(e.out.writers, waiting{w, low})
	if len(e.out.queue) <= low || e.out.ended {
		w.Wake()
	}
}

func (e *end) Wake() {
	e.in.reader.Wake()
	for _, w := range e.out.writers {
		w.Wake()
	}
}

// CloseWrite is not called: what this side writes ends with close_notify, and answers may follow it.
func (e *end) CloseWrite() error {
	e.m.sides[0].err = fmt.Errorf("the transport's write side is closed")
	return nil
}

func (e *end) Close(time.Duration) { e.out.ended = true }
func (e *end) Abort()              { e.out.ended = true }
func (e *end) LocalAddr() net.Addr { return nil }
func (e *end) PeerAddr() net.Addr  { return nil }

// side is the task of one end. It writes and reads pieces, sometimes pauses, ends its write side and reads to the end.
type side struct {
	m      *model
	c      *listener.Conn
	filter act.Action // nil: has ended
	salt   byte
	total  int
	most   int // may be queued

	sent, got int
	closed    bool // its write side
	ended     bool // the peer's
	over      bool
	pauses    bool // until it is woken
	waker     act.Waker
	failed    error // of the handshake, a read or a write
	err       error // what must not be
}

func (x *side) Act(t *act.Task) act.Directive {
	if x.filter != nil {
		d := x.filter.Act(t)
		switch d {
		case act.Done:
			x.filter = nil
		case act.Failed:
			return x.fail(t, fmt.Errorf("handshake: %w", t.Err()))
		default:
			return d
		}
	}
	if x.waker = t.Waker(); x.pauses {
		return act.Wait
	}
	if x.m.IntN(20) == 0 {
		x.pauses = true
		return act.Wait
	}
	wrote := x.write()
	read := x.read()
	switch {
	case x.failed != nil:
		return x.fail(t, x.failed)
	case x.closed && x.ended:
		x.over = true
		_ = x.c.Close()
		return act.Done
	}
	waits := true
	for _, err := range []error{wrote, read} {
		if b, ok := err.(act.Blocked); ok {
			b.Arm(t)
		} else if err == nil {
			waits = false
		}
	}
	if waits {
		return act.Wait
	}
	return act.Yield
}

func (x *side) fail(t *act.Task, err error) act.Directive {
	x.failed, x.over = err, true
	x.c.Abort()
	return t.Fail(err)
}

// errAll means that nothing is left to do.
var errAll = fmt.Errorf("all is done")

// write returns nil, or what it waits for.
func (x *side) write() error {
	for range x.m.IntN(5) {
		if x.sent == x.total {
			break
		}
		p := make([]byte, min(x.total-x.sent, 1+x.m.IntN(pickFrom(x.m.IntN, 10, 2000, 150_000))))
		for i := range p {
			p[i] = pattern(x.sent+i, x.salt)
		}
		n, err := x.c.Write(p)
		if x.sent += n; err != nil {
			return x.blocked(err)
		}
	}
	if x.sent < x.total {
		return nil
	}
	if !x.closed {
		x.closed = true
		return x.blocked(x.c.CloseWrite())
	}
	return errAll
}

// blocked keeps an error that is none of those that end.
func (x *side) blocked(err error) error {
	if _, ok := err.(act.Blocked); !ok && err != nil {
		x.failed = fmt.Errorf("writing: %w", err)
	}
	return err
}

func (x *side) read() error {
	if x.ended {
		return errAll
	}
	in, err := x.c.Peek(1 + x.m.IntN(pickFrom(x.m.IntN, 1, 10)))
	if len(in) > 0 {
		in = in[:1+x.m.IntN(len(in))]
	}
	for _, b := range in {
		if want := pattern(x.got, 1-x.salt); b != want {
			x.err = fmt.Errorf("byte %d is %#x and not %#x", x.got, b, want)
		}
		x.got++
	}
	x.c.Discard(len(in))
	switch _, blocked := err.(act.Blocked); {
	case err == io.EOF && x.c.Buffered() > 0:
		return nil
	case err == io.EOF:
		x.ended = true
		if want := x.m.sides[1-x.salt].total; x.got != want && !x.m.spoilt { // between two records the end of the transport is one
			x.err = fmt.Errorf("the end comes after %d bytes of %d", x.got, want)
		}
		return errAll
	case err != nil && !blocked:
		x.failed = fmt.Errorf("reading: %w", err)
	case blocked && x.c.Buffered() > 0:
		return nil
	}
	return err
}

func (x *side) String() string {
	return fmt.Sprintf("has sent %d of %d and got %d; closed %v, ended %v, pauses %v", x.sent, x.total, x.got, x.closed, x.ended, x.pauses)
}

// pattern is byte i of what one side sends.
func pattern(i int, salt byte) byte { return byte(uint64(i+int(salt)) * 0x9E3779B97F4A7C15 >> 32) }
