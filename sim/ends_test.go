package sim_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/stretchr/testify/require"
)

// tolerance is how much later than its moment something may happen in these worlds: turns and passes take time, and a
// scheduler may be stepped late.
const tolerance = 100 * time.Millisecond

// orderly is a server to which orders come, escalate and are withdrawn at random moments, and what it may do by them. The
// model below is a list of the orders; it knows nothing of how a scheduler keeps them.
type orderly struct {
	w      *sim.World
	server *sim.Server
	orders []*announcedOrder
	last   time.Duration // when a task last had a turn
	cut    time.Duration // when a task was last dropped near the bound that had no turns left, and may have wanted one
	told   bool          // a task was told of an order
	over   bool          // the world has ended, and has ordered the server to
	alive  []int         // ordinary tasks on each scheduler
	latest []moment      // that was given to a task of each scheduler
	lasts  bool          // there are tasks that end last
	quiet  bool          // tasks have no turns but those for an order and for their end
	drains drains
}

// moment is when a task is to leave by an order.
type moment struct {
	order *announcedOrder
	leave time.Duration
}

// announcedOrder is an order, and what is known of it.
type announcedOrder struct {
	n         int
	terms     shutdown.Policy
	given     time.Duration
	withdrawn bool
}

func (o *announcedOrder) Policy() shutdown.Policy { return o.terms }

// begins returns when the first order comes into force, if time goes on like this; less than 0: never.
func (e *orderly) begins() time.Duration {
	first := time.Duration(-1)
	for _, o := range e.orders {
		if at := o.given + o.terms.Resolved().Announce; !o.withdrawn && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// inForce reports whether an order may be in force now, and whether one must be.
func (e *orderly) inForce() (may, must bool) {
	at := e.begins()
	return e.over || at >= 0 && e.w.Now() >= at, at >= 0 && e.w.Now() > at+tolerance
}

// bound returns when all must have ended, if a task last had a turn then; less than 0: there is no bound yet.
func (e *orderly) bound(last time.Duration) time.Duration {
	begins, first := e.begins(), time.Duration(-1)
	if begins < 0 {
		return first
	}
	for _, o := range e.orders {
		p, at := o.terms.Resolved(), time.Duration(-1)
		switch {
		case o.withdrawn:
			continue
		case p.Kind == shutdown.Halt:
			at = max(begins, o.given)
		case p.Kind == shutdown.Bounded && p.Time > 0:
			at = max(begins, o.given+p.Time)
		}
		if at >= 0 && (first < 0 || at < first) {
			first = at
		}
		if p.Inactivity > 0 {
			if at := max(last, begins, o.given, e.leave(begins)) + p.Inactivity; first < 0 || at < first {
				first = at
			}
		}
	}
	return first
}

// leave returns the end of the window in which idle tasks leave.
func (e *orderly) leave(begins time.Duration) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, o := range e.orders {
		if !o.withdrawn {
			p, at := o.terms.Resolved(), max(begins, o.given)
			if p.Time > 0 {
				p.Spread = min(p.Spread, (p.Time-(at-o.given))/2)
			}
			first = min(first, at+p.Spread)
		}
	}
	return first
}

// worker is a task that works for a while, in turns that a timer or others cause, and ends at its moment if it is told.
type worker struct {
	e          *orderly
	home       int
	until      time.Duration // when it ends by itself
	leave      time.Duration // when it was told to end; less than 0: it was not
	tick       act.Timer
	last, over bool
	stubborn   bool          // it goes on when it is told
	since      time.Duration // it waits for its first work since then; less than 0: it has had some
	told       int
	turns      []time.Duration // when it had one
}

// turnsSince returns how many turns it had since then.
func (x *worker) turnsSince(at time.Duration) (n int) {
	for _, turn := range x.turns {
		if turn >= at {
			n++
		}
	}
	return n
}

// outOfTurns reports whether x has used up the turns that an order leaves it, if they count from a moment that is off
// by some time.
func (x *worker) outOfTurns(off time.Duration) bool {
	begins := x.e.begins()
	return begins >= 0 && slices.ContainsFunc(x.e.orders, func(o *announcedOrder) bool {
		return !o.withdrawn && o.terms.Turns > 0 && x.turnsSince(max(begins, o.given, x.e.leave(begins))+off) >= o.terms.Turns
	})
}

func (x *worker) Act(t *act.Task) act.Directive {
	now := t.Scheduler().Now()
	may, must := x.e.inForce()
	switch {
	case x.leave < 0 && must && !x.last:
		x.e.w.Errorf("a task has a turn at %v, and was not told of the order in force since %v", x.e.w.Now(), x.e.begins())
	case t.Order() != nil && !may:
		x.e.w.Errorf("a task sees the order %v at %v, and none is in force", t.Order(), x.e.w.Now())
	case t.Order() != nil && x.last && x.leave < 0:
		x.e.w.Errorf("a task that ends last sees an order that it was not told of")
	}
	if !x.last {
		x.e.last = x.e.w.Now()
		if x.outOfTurns(tolerance) {
			x.e.w.Errorf("a task has a turn at %v, and its turns are used up: %v", x.e.w.Now(), x.turns)
		}
		x.turns = append(x.turns, x.e.w.Now())
	}
	if now >= x.until || x.leave >= 0 && now >= x.leave {
		x.finish()
		return act.Done
	}
	next := x.until
	if x.leave >= 0 {
		next = min(next, x.leave)
	}
	if r := x.e.w.Rand(); !x.e.quiet && r.IntN(3) > 0 {
		next = min(next, now+1+time.Duration(r.Int64N(int64(time.Second))))
	}
	t.WakeAt(&x.tick, next)
	t.Waker()
	return act.Wait
}

func (x *worker) finish() {
	if x.over = true; !x.last {
		x.e.alive[x.home]--
	}
}

// Stop is the moment of truth: not before an order is in force, not of one that was withdrawn, and the last ones last.
func (x *worker) Stop(t *act.Task, o shutdown.Order) {
	e := x.e
	order, ok := o.(*announcedOrder)
	if !ok {
		e.over, x.leave = true, t.Scheduler().Now()
		return
	}
	may, _ := e.inForce()
	halting := slices.ContainsFunc(e.orders, func(o *announcedOrder) bool { return o.terms.Kind == shutdown.Halt })
	switch {
	case order.withdrawn:
		e.w.Errorf("a task is told at %v of the order %d, which was withdrawn", e.w.Now(), order.n)
	case !may:
		e.w.Errorf("a task is told at %v of the order %d, which is in force from %v on", e.w.Now(), order.n, e.begins())
	case x.last && e.alive[x.home] > 0 && !halting:
		e.w.Errorf("a task that ends last is told, and %d others are left", e.alive[x.home])
	}
	x.told, e.told = x.told+1, true
	if x.since >= 0 {
		x.leaveNew(t, order)
		return
	}
	leave := t.NextLeaveTime()
	if window := order.terms.Resolved().Spread; leave > t.Scheduler().Now()+window {
		e.w.Errorf("a task is to leave %v after an order that is spread over %v", leave-t.Scheduler().Now(), window)
	} else if window > time.Second && e.latest[x.home] == (moment{order, leave}) && leave > t.Scheduler().Now() {
		e.w.Errorf("two tasks are to leave at the same moment %v", leave)
	}
	e.latest[x.home] = moment{order, leave}
	if x.stubborn {
		leave = x.until
	}
	if x.leave < 0 || leave < x.leave {
		x.leave = leave
	}
}

// leaveNew is for a task that waits for its first work. It gets a second, or less if the order has little time.
func (x *worker) leaveNew(t *act.Task, order *announcedOrder) {
	now, leave := t.Scheduler().Now(), t.Scheduler().Internals().FirstLeaveTime(t, x.since)
	p, second := order.terms.Resolved(), time.Second
	if latest := max(now+p.Spread, x.since+second); leave > latest {
		x.e.w.Errorf("a new task is to leave %v after an order, and at most %v later", leave-now, latest-now)
	}
	if p.Time > 0 {
		second = min(second, (p.Time-p.Announce)/2)
	}
	if p.Inactivity > 0 {
		second = min(second, p.Inactivity/2)
	}
	if earliest := min(x.since+time.Second, now+second-tolerance); len(x.e.orders) == 1 && p.Turns == 0 && leave < earliest {
		x.e.w.Errorf("a new task is to leave %v after an order, and at least %v later", leave-now, earliest-now)
	}
	if x.leave < 0 || leave < x.leave {
		x.leave = leave
	}
}

// Close is called when the task is dropped.
func (x *worker) Close() error {
	if x.over {
		return nil
	}
	switch b, out := x.e.bound(x.e.last), !x.last && x.outOfTurns(-tolerance); {
	case x.e.over || x.last || b >= 0 && x.e.w.Now() >= b-tolerance:
		if out {
			x.e.cut = x.e.w.Now()
		}
	case out:
		x.e.last = x.e.w.Now() // it would have had another turn
	default:
		x.e.w.Errorf("a task is dropped at %v, and %v is the bound", x.e.w.Now(), b)
	}
	x.finish()
	return nil
}

// lastOne is a service that ends last, and has a session.
type lastOne struct{ worker }

func (x *lastOne) Act(t *act.Task) act.Directive {
	if x.told == 0 && !x.tick.Armed() && x.until == 0 {
		x.until = time.Hour
		t.Scheduler().Spawn(&worker{e: x.e, home: x.home, until: time.Hour, leave: -1, last: true, since: -1})
	}
	return x.worker.Act(t)
}

// give gives an order, or withdraws one.
func (e *orderly) give() {
	if r := e.w.Rand(); len(e.orders) > 0 && r.IntN(3) == 0 {
		o := e.orders[r.IntN(len(e.orders))]
		may, must := e.inForce()
		begun := e.w.Now() >= o.given+o.terms.Resolved().Announce
		was := e.server.Withdraw(o)
		switch {
		case was && (o.withdrawn || e.told):
			e.w.Errorf("the order %d was withdrawn, and tasks were told of an order, or it was withdrawn before", o.n)
		case was && must:
			e.w.Errorf("the order %d was withdrawn at %v, in force since %v", o.n, e.w.Now(), e.begins())
		case !was && !o.withdrawn && !may && !begun && e.server.Err() == nil && !e.server.Ended():
			e.w.Errorf("the order %d is only announced, and cannot be withdrawn", o.n)
		}
		o.withdrawn = o.withdrawn || was
		return
	}
	some := func(odds int) time.Duration {
		if e.w.Rand().IntN(odds) > 0 {
			return 0
		}
		return 1 + time.Duration(e.w.Rand().Int64N(int64(5*time.Second)))
	}
	terms := shutdown.Policy{Time: some(2), Announce: some(2), Spread: some(2), Inactivity: some(4), Drop: true}
	if e.quiet {
		terms.Inactivity = some(2) / 4 // often within the window
	}
	if e.w.Rand().IntN(4) == 0 {
		terms.Turns = 1 + e.w.Rand().IntN(5)
	}
	if e.w.Rand().IntN(8) == 0 {
		terms.Kind = shutdown.Halt
	}
	o := &announcedOrder{len(e.orders), terms, e.w.Now(), false}
	e.orders = append(e.orders, o)
	e.server.Shutdown(o)
}

// check looks whether the server is there for too long, or has ended too early.
func (e *orderly) check() {
	if e.server.Ended() {
		return
	}
	if b := e.bound(max(e.last, e.cut)); b >= 0 && e.w.Now() > b+2*tolerance {
		e.w.Errorf("the server still runs at %v, and should have ended at %v", e.w.Now(), b)
	}
	e.missDrain()
	e.w.At(e.w.Now()+50*time.Millisecond, e.check)
}

// ends is a world of orders.
func ends(t testing.TB) func(w *sim.World) {
	return func(w *sim.World) {
		e := &orderly{w: w, quiet: w.Rand().IntN(4) == 0}
		schedulers := pick(w, 1, 2, 3)
		e.alive, e.latest = make([]int, schedulers), make([]moment, schedulers)
		most := pick(w, 20, 20, 20, 2000)
		live := time.Duration(1 + w.Rand().Int64N(int64(pick(w, 3*time.Second, 20*time.Second))))
		if e.quiet {
			live = time.Minute // most of them wait for their moment
		}
		v, err := w.Server("server", act.Config{Schedulers: schedulers, Draining: e.drain}, func(s *act.Scheduler) error {
			for range w.Rand().IntN(most) {
				x := &worker{e: e, home: s.Index(), until: 1 + time.Duration(w.Rand().Int64N(int64(live))), leave: -1, stubborn: w.Rand().IntN(3) == 0, since: -1}
				if w.Rand().IntN(3) == 0 {
					x.since = time.Duration(w.Rand().Int64N(int64(live)))
				}
				e.alive[s.Index()]++
				s.Spawn(x)
			}
			if w.Rand().IntN(2) == 0 {
				e.lasts = true
				s.Internals().InstallLast(&lastOne{worker{e: e, home: s.Index(), leave: -1, last: true, since: -1}})
			}
			return nil
		})
		require.NoError(t, err)
		e.server = v
		for range pick(w, 1, 2, 3, 6) {
			w.At(time.Duration(w.Rand().Int64N(int64(10*time.Second))), e.give)
		}
		w.At(time.Millisecond, e.check)
	}
}

// TestWorldEnds has worlds in which orders come, escalate, and are withdrawn while they are announced. Every bound is kept.
func TestWorldEnds(t *testing.T) {
	t.Parallel()
	sim.Test(t, ends(t))
}

// newcomers is a server of HTTP, with a PROXY header or without, and an order to it. Its clients have connected shortly before.
type newcomers struct {
	w       *sim.World
	headers bool
	terms   shutdown.Policy
	ordered time.Duration // when
}

// TestWorldNewcomers has clients that have connected shortly before an order, and take their time before they send.
// What they send within a second is answered. A client that sends nothing is closed after a second, or in the window of
// the order; a client that has had an answer, at once or in the window.
func TestWorldNewcomers(t *testing.T) {
	t.Parallel()
	sim.TestWith(t, sim.Options{}, func(w *sim.World) {
		n := &newcomers{w: w, headers: w.Rand().IntN(2) == 0, ordered: time.Second}
		n.terms = shutdown.Policy{Time: pick(w, 6*time.Second, time.Minute), Spread: pick(w, 0, 0, 500*time.Millisecond, 2*time.Second),
			Inactivity: pick(w, 0, 3*time.Second), Drop: true}.Resolved()
		web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString("hello")
			return nil
		}}
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: web.Serve}
		if n.headers {
			tcp.Filters = []listener.Filter{proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})}
		}
		v, err := w.Server("web", act.Config{Schedulers: pick(w, 1, 2)}, tcp.Setup)
		require.NoError(t, err)
		for range 8 {
			w.At(n.ordered-100*time.Millisecond-time.Duration(w.Rand().Int64N(int64(300*time.Millisecond))), func() {
				w.Client("10.0.0.1:80", pick(w, n.late, n.late, n.silent, n.idle))
			})
		}
		w.At(n.ordered, func() { v.Shutdown(n.terms) })
	})
}

// send sends text, after a header in two pieces if there is one, and waits before each piece.
func (n *newcomers) send(c *sim.Client, pause time.Duration, text string) error {
	pieces := []string{text}
	if n.headers {
		pieces = []string{"PROXY ", "UNKNOWN\r\n", text}
	}
	for _, p := range pieces {
		c.Sleep(pause)
		if _, err := io.WriteString(c, p); err != nil {
			return err
		}
	}
	return nil
}

// late is a client that sends its first request about when the order comes, or later.
func (n *newcomers) late(c *sim.Client) error {
	after := time.Duration(c.Rand().Int64N(int64(900 * time.Millisecond)))
	err := n.send(c, after, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err == nil {
		err = n.answered(c)
	}
	if err != nil { // a server that ends may cut connections, but not these
		n.w.Errorf("%v has connected in time, and gets no answer: %v", c, err)
	}
	return nil
}

// silent is a client that sends no request, and not always the whole header.
func (n *newcomers) silent(c *sim.Client) error {
	since := n.w.Now()
	if n.headers && c.Rand().IntN(2) == 0 {
		if err := n.send(c, 0, ""); err != nil {
			return err
		}
	}
	return n.ends(c, max(since+time.Second, n.ordered+n.terms.Spread/2), max(since+time.Second, n.ordered+n.terms.Spread))
}

// idle is a client that has had an answer before the order.
func (n *newcomers) idle(c *sim.Client) error {
	if err := n.send(c, 0, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	if err := n.answered(c); err != nil {
		return err
	}
	return n.ends(c, n.ordered+n.terms.Spread/2, n.ordered+n.terms.Spread)
}

func (n *newcomers) answered(c *sim.Client) error {
	var got []byte
	for !bytes.HasSuffix(got, []byte("hello")) {
		var one [100]byte
		m, err := c.Read(one[:])
		if err != nil {
			return fmt.Errorf("after %q, in place of an answer: %w", got, err)
		}
		got = append(got, one[:m]...)
	}
	return nil
}

// ends waits for the end of the connection, which must come between two moments.
func (n *newcomers) ends(c *sim.Client, from, to time.Duration) error {
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		return err
	}
	if now := n.w.Now(); now < from-tolerance || now > to+tolerance {
		n.w.Errorf("%v ends at %v, not between %v and %v", c, now, from, to)
	}
	return nil
}

// TestWorldArrivedBeforeTheOrder has clients that connect around the time of an order. If a connection has arrived before the
// order, the server serves it, even if it accepts it later.
func TestWorldArrivedBeforeTheOrder(t *testing.T) {
	t.Parallel()
	sim.TestWith(t, sim.Options{}, func(w *sim.World) {
		hello := func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				if _, err := c.WriteString("hello"); err != nil {
					return t.Fail(err)
				}
				return act.Done
			})
		}
		tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: hello}
		v, err := w.Server("hello", act.Config{Schedulers: pick(w, 1, 3)}, append(anyEngine(w), tcp.Setup)...)
		require.NoError(t, err)
		var clients []*sim.Client
		served := map[*sim.Client]bool{}
		for range 20 {
			w.At(time.Duration(w.Rand().Int64N(int64(2*time.Millisecond))), func() {
				clients = append(clients, w.Client(tcp.Address, func(c *sim.Client) error {
					_, err := c.Write([]byte("x"))
					if err != nil {
						return nil
					}
					got, err := io.ReadAll(c)
					if served[c] && string(got) != "hello" {
						return fmt.Errorf("it has arrived before the order, but got %q, %v", got, err)
					}
					return nil
				}))
			})
		}
		w.At(time.Duration(w.Rand().Int64N(int64(2*time.Millisecond))), func() {
			for _, c := range clients {
				served[c] = c.Arrived() > 0
			}
			v.Shutdown(shutdown.Policy{Time: time.Minute})
		})
	})
}

// drains is what Config.Draining has said in a world of orders: see TestWorldEnds.
type drains struct {
	at   time.Duration // the latest; 0: none
	last shutdown.Drain
	left int // ordinary tasks at that moment
}

// standing returns when the oldest order was given that was not withdrawn; less than 0: there is none.
func (e *orderly) standing() time.Duration {
	for _, o := range e.orders {
		if !o.withdrawn {
			return o.given
		}
	}
	return -1
}

func (e *orderly) left() (sum int) {
	for _, n := range e.alive {
		sum += n
	}
	return sum
}

// drain compares a report with what the world knows: the schedulers have counted at about the same moment.
func (e *orderly) drain(d shutdown.Drain) {
	now, left, before := e.w.Now(), e.left(), e.drains
	e.drains = drains{now, d, left}
	if e.over {
		return
	}
	may, must := e.inForce()
	first := before.at == 0 || now-d.For > before.at-before.last.For+tolerance // of its orders: those before were withdrawn
	switch {
	case e.standing() < 0:
		e.w.Errorf("at %v there is a report of an end, and no order: %v", now, d)
	case len(d.Silent) > 0:
		e.w.Errorf("at %v a scheduler is missed that has turns: %v", now, d)
	case before.at > 0 && now < before.at+time.Second-tolerance && !first:
		e.w.Errorf("two reports at %v and %v", before.at, now)
	case d.Phase == "announced" && must, d.Phase != "announced" && !may:
		e.w.Errorf("at %v an order is in force: %v, and the report says: %v", now, may, d)
	case d.Cut.Tasks < left:
		e.w.Errorf("%d tasks are left at %v, and the report says: %v", left, now, d)
	case e.lasts: // they are counted when they are told
	case !first && d.Cut.Tasks > before.left:
		e.w.Errorf("%d tasks were left at %v, and at %v the report says: %v", before.left, before.at, now, d)
	case !first && d.Ended != before.last.Cut.Tasks-d.Cut.Tasks:
		e.w.Errorf("at %v were left %v, and at %v the report says: %v", before.at, before.last, now, d)
	}
}

// missDrain looks whether a report is missing.
func (e *orderly) missDrain() {
	if from := max(e.standing(), e.drains.at); e.standing() >= 0 && !e.over && e.left() > 0 && e.w.Now() > from+time.Second+2*tolerance {
		e.w.Errorf("at %v there is no report of the end since %v", e.w.Now(), from)
	}
}

// TestWorldEnded has tasks that never read, and wait only for the end of their connection: bytes, an end, and a reset after
// it. A task that is not woken never ends.
func TestWorldEnded(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		serve := func(local bool) func(*listener.Conn) act.Action {
			return func(c *listener.Conn) act.Action { return &witness{w: w, c: c, local: local} }
		}
		tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: serve(false)}
		unix := &service.Listener{Address: "unix:/run/wake", Handler: serve(true)}
		_, err := w.Server("wake", act.Config{Schedulers: pick(w, 1, 2)}, append(anyEngine(w), tcp.Setup, unix.Setup)...)
		require.NoError(t, err)
		for range 5 {
			w.Client("10.0.0.1:7007", leave)
			w.Client("unix:/run/wake", leave)
		}
	})
}

// leave sends for a while to a task that does not read. It closes in two steps, or in one.
func leave(c *sim.Client) error {
	for range c.Rand().IntN(5) {
		if _, err := c.Write([]byte("are you there?")); err != nil {
			return err
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
	}
	if c.Rand().IntN(2) == 0 {
		if err := c.CloseWrite(); err != nil {
			return err
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
	}
	c.Abort()
	return nil
}

type witness struct {
	w     *sim.World
	c     *listener.Conn
	local bool
	half  bool
	idle  int // turns without news
}

func (x *witness) Act(t *act.Task) act.Directive {
	half, err := x.c.Ended(t)
	if half == x.half && err == nil {
		if x.idle++; x.idle > 2 { // the first turn, and an order
			x.w.Errorf("woken for nothing")
		}
	}
	x.half = half
	if err != nil || half && x.local { // over a Unix socket there is no reset
		return act.Done
	}
	return act.Wait
}

// TestWorldWokenBetweenDemons has a demon wake a task from outside while others of its pass are still to have their turns.
func TestWorldWokenBetweenDemons(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		var bell act.AtomicWaker
		rung, heard := false, false
		_, err := w.Server("server", act.Config{}, func(s *act.Scheduler) error {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				if bell.Set(t.Waker()); !rung {
					return act.Wait
				}
				heard = true
				return act.Done
			}))
			s.Install(once(func() { rung = true; bell.Wake() }))
			for range 3 {
				s.Install(once(func() {}))
			}
			return nil
		})
		require.NoError(t, err)
		w.At(time.Second, func() {
			if !heard {
				w.Errorf("the task sleeps, and has been woken")
			}
		})
	})
}

// once is a demon that has one turn.
type once func()

func (f once) Act(*act.Task) act.Directive {
	f()
	return act.Done
}

func (once) Stop(*act.Task, shutdown.Order) {}
