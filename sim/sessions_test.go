package sim_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// The scenario of this file has what TestWorldMixed lacks: a server that closes first, deadlines, repeated orders, tasks
// that panic, and promises that only a task can check.

// TestWorldSessions is a server that closes some connections first. Some of its clients break theirs off.
func TestWorldSessions(t *testing.T) {
	t.Parallel()
	f := sim.Anything().With(65536/20, "no memory", "no descriptors", "aborted connection", "late offload")
	sim.TestWith(t, sim.Options{Faults: f, Panics: true}, sessions(t))
}

func sessions(t *testing.T) func(w *sim.World) {
	return func(w *sim.World) {
		cfg := act.Config{Schedulers: pick(w, 1, 2, 4), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 256)}
		h := &talkServer{w: w, limits: patient(w)}
		h.limits.Read, h.limits.Linger = 0, pick(w, 5*time.Second, time.Hour)
		tcp := &service.Listener{Address: "10.0.0.1:7007", Handler: h.receive, MaxConns: pick(w, 0, 0, 1, 5), Limits: h.limits,
			EvictAfter: -1} // otherwise it would look for a place again and again, though nothing has woken it
		unix := &service.Listener{Address: "unix:/run/talk", Handler: h.receive, MaxConns: pick(w, 0, 0, 1, 5), Limits: h.limits}
		cfg.Trace = spawning(w)
		v, err := w.Server("talk", cfg, append(anyEngine(w), tcp.Setup, unix.Setup, h.spawnTasks)...)
		require.NoError(t, err)
		addresses := pick(w, []string{"10.0.0.1:7007"}, []string{"unix:/run/talk"}, []string{"10.0.0.1:7007", "unix:/run/talk"})
		spread := pick(w, 1, 5*time.Second)
		w.Client(addresses[0], func(c *sim.Client) error { // without a client the world would end
			c.Sleep(spread)
			return nil
		})
		for i := range pick(w, 12, 12, 150) {
			g := &talkClient{talkServer: h, n: i}
			h.clients = append(h.clients, g)
			w.At(time.Duration(w.Rand().Int64N(int64(spread))), func() { w.Client(pick(w, addresses...), g.talkConn) })
		}
		if terms, given := order(w); given {
			at := time.Duration(w.Rand().Int64N(int64(10 * time.Second)))
			for range 2 {
				w.At(at, func() { v.Shutdown(terms) })
				at += time.Duration(w.Rand().Int64N(int64(time.Second)))
			}
		}
	}
}

// spawning checks that no turn spawns more tasks than a service may accept in one turn.
func spawning(w *sim.World) *act.Trace {
	spawned := 0
	return &act.Trace{
		TurnStart: func(*act.Task) { spawned = 0 },
		Spawned: func(*act.Task) {
			if spawned++; spawned > 64 {
				w.Errorf("one turn has spawned %d tasks", spawned)
			}
		},
	}
}

// talkServer is the server. A question is a line with two numbers: that of the client, and how many bytes it wants.
// The answer is a line with their number, and the bytes. Before the server closes it sends a farewell with some bytes more.
type talkServer struct {
	w       *sim.World
	limits  listener.Limits
	clients []*talkClient
}

// silenceLimit is how long a client may be silent.
const silenceLimit = 5 * time.Second

func (h *talkServer) receive(c *listener.Conn) act.Action {
	return &talkConn{talkServer: h, c: c, line: listener.Line{Conn: c}}
}

type talkConn struct {
	*talkServer
	line    listener.Line
	c       *listener.Conn
	of      *talkClient // nil: not known yet
	due     time.Duration
	ordered bool
	closing bool
	first   string // line of the answer
	left    int    // bytes after it
}

func (v *talkConn) Stop(*act.Task, shutdown.Order) {
	if v.ordered {
		v.w.Errorf("notified again of an order that is not stricter")
	}
	v.ordered = true
}

func (v *talkConn) Act(t *act.Task) act.Directive {
	if most := v.limits.High + 4<<10; v.limits.High > 0 && v.c.Queued() > most {
		v.w.Errorf("%d bytes are queued, of %d at most", v.c.Queued(), most)
	}
	if t.Order() != nil && !v.ordered {
		v.w.Errorf("a connection has a turn under an order that it was not notified of")
	}
	switch {
	case v.first != "" || v.left > 0:
		return v.answer(t)
	case v.closing:
		return act.Done
	case v.ordered:
		return v.sayFarewell(t)
	}
	return v.listen(t)
}

// listen waits for a question, for silenceLimit.
func (v *talkConn) listen(t *act.Task) act.Directive {
	if v.due == 0 {
		v.due = v.w.Now() + silenceLimit
		_ = v.c.SetReadDeadline(t.Scheduler().Clock().Wall().Add(silenceLimit))
	}
	line, err := v.line.Read()
	switch {
	case err == nil:
		return v.question(t, string(line))
	case errors.Is(err, os.ErrDeadlineExceeded):
		if v.w.Now() < v.due {
			v.w.Errorf("a deadline for %v has passed at %v", v.due, v.w.Now())
		}
		return v.sayFarewell(t)
	case err == io.EOF && v.of != nil && !v.of.over:
		v.w.Errorf("guest %d goes on, but Ended reports the end of its connection", v.of.n)
	}
	return listener.Next(t, err)
}

func (v *talkConn) question(t *act.Task, line string) act.Directive {
	var who, n int
	if _, err := fmt.Sscanf(line, "%d %d", &who, &n); err != nil {
		return act.Done // the stream has ended within a line
	}
	v.due, v.of = 0, v.clients[who]
	switch v.w.Rand().IntN(50) {
	case 0:
		v.of.failed = true
		panic("on purpose")
	case 1:
		v.of.failed = true
		_, _ = v.c.WriteString("what the next must not read")
		v.c.Abort()
		return act.Done
	}
	v.first, v.left = fmt.Sprintf("answer %d\n", n), n
	return v.answer(t)
}

func (v *talkConn) sayFarewell(t *act.Task) act.Directive {
	n := v.w.Rand().IntN(100_000)
	v.closing, v.first, v.left = true, fmt.Sprintf("farewell %d\n", n), n
	return v.answer(t)
}

// answer writes as much as there is room for.
func (v *talkConn) answer(t *act.Task) act.Directive {
	if v.first != "" {
		if _, err := v.c.WriteString(v.first); err != nil {
			return listener.Next(t, err)
		}
		v.first = ""
	}
	p := make([]byte, min(v.left, 10_000))
	for i := range p {
		p[i] = letter(v.left - i)
	}
	n, err := v.c.Write(p)
	v.left -= n
	return listener.Next(t, err)
}

// letter returns the byte that has so many bytes after it.
func letter(left int) byte { return byte(left ^ left>>8) }

// talkClient is a client.
type talkClient struct {
	*talkServer
	n      int
	failed bool // its connection has failed
	over   bool // it asks nothing more
}

func (g *talkClient) talkConn(c *sim.Client) error {
	err := g.ask(c)
	g.over = true
	if g.failed || g.limits.Linger < time.Hour && !errors.Is(err, errNotClosed) { // a slow client loses the rest
		return nil
	}
	return err
}

func (g *talkClient) ask(c *sim.Client) error {
	r := bufio.NewReader(c)
	for range 1 + c.Rand().IntN(5) {
		if _, err := fmt.Fprintf(c, "%d %d\n", g.n, 1<<c.Rand().IntN(17)); err != nil {
			return err
		}
		if closing, err := g.readAnswer(r); closing || err != nil {
			return err
		}
	}
	switch c.Rand().IntN(5) {
	case 0:
		g.over = true
		c.Abort()
		return nil
	case 1:
		return g.sendAfterEnd(c, r)
	case 2:
		return g.sendWhileReading(c, r)
	case 3:
		g.over = true
		if err := c.CloseWrite(); err != nil {
			return err
		}
	}
	return g.readToEnd(r)
}

// readAnswer reads an answer, and reports whether it was the last.
func (g *talkClient) readAnswer(r *bufio.Reader) (closing bool, err error) {
	var what string
	var n int
	line, err := r.ReadString('\n')
	if err != nil {
		return false, party.Unexpected(err)
	}
	if _, err := fmt.Sscanf(line, "%s %d\n", &what, &n); err != nil {
		return false, fmt.Errorf("guest %d hears %q", g.n, line)
	}
	for ; n > 0; n-- {
		b, err := r.ReadByte()
		if err != nil {
			return false, fmt.Errorf("with %d bytes to come: %w", n, party.Unexpected(err))
		}
		if b != letter(n) {
			return false, fmt.Errorf("%d bytes before its end the answer has %#x and not %#x", n, b, letter(n))
		}
	}
	return what == "farewell", nil
}

// readToEnd reads to the end.
func (g *talkClient) readToEnd(r *bufio.Reader) error {
	for {
		if _, err := r.Peek(1); err == io.EOF {
			return nil
		}
		if _, err := g.readAnswer(r); err != nil {
			return err
		}
	}
}

var errNotClosed = errors.New("a minute after its end the connection is still there")

// sendAfterEnd waits for the farewell and keeps sending. The server must neither read that nor wait for it.
func (g *talkClient) sendAfterEnd(c *sim.Client, r *bufio.Reader) error {
	if err := g.readToEnd(r); err != nil || g.limits.Linger > 10*time.Second {
		return err
	}
	for range 60 {
		c.Sleep(time.Second)
		if _, err := c.Write([]byte{'!'}); err != nil {
			return nil
		}
	}
	return errNotClosed
}

// sendWhileReading sends while the farewell arrives, which must not be lost.
func (g *talkClient) sendWhileReading(c *sim.Client, r *bufio.Reader) error {
	c.Sleep(silenceLimit)
	c.Go(func(*sim.Client) error {
		if _, err := c.Write(make([]byte, 500_000)); err != nil {
			return nil // the reader gets it, too
		}
		g.over = true
		return c.CloseWrite()
	})
	return g.readToEnd(r)
}

// spawnTasks spawns the tasks that run besides the connections.
func (h *talkServer) spawnTasks(s *act.Scheduler) error {
	s.Spawn(&parent{h: h, generations: 2})
	s.Spawn(&sleeps{h: h})
	s.Spawn(&offloads{h: h})
	s.Spawn(act.Func(h.endsWithTimer()))
	s.Spawn(act.Func(h.closesMailbox()))
	s.Spawn(act.Func(h.postsToAll()))
	return nil
}

// parent waits for an order, which must come once. Then it spawns a task that must be notified, too.
type parent struct {
	h           *talkServer
	generations int
	orders      int
}

func (x *parent) Stop(*act.Task, shutdown.Order) {
	if x.orders++; x.orders > 1 {
		x.h.w.Errorf("notified again of an order that is not stricter")
	}
}

func (x *parent) Act(t *act.Task) act.Directive {
	switch {
	case x.orders == 0:
		t.Waker()
		return act.Wait
	case x.generations > 0:
		t.Scheduler().Spawn(&parent{h: x.h, generations: x.generations - 1})
	}
	return act.Done
}

// offloads offloads a function, and is woken meanwhile. It must not have a turn before the function returns.
type offloads struct {
	h     *talkServer
	timer act.Timer
	count int
	away  bool
}

func (x *offloads) Act(t *act.Task) act.Directive {
	x.check("has a turn")
	if x.count++; x.count > 50 {
		return act.Done
	}
	t.WakeAfter(&x.timer, time.Duration(x.h.w.Rand().Int64N(int64(time.Millisecond))))
	x.away = true
	return t.Offload(func() { x.away = false })
}

func (x *offloads) Close() error {
	x.check("is closed")
	return nil
}

func (x *offloads) check(what string) {
	if x.away {
		x.h.w.Errorf("a task %s while the function that it has offloaded runs", what)
	}
}

// sleeps is woken while it sleeps.
type sleeps struct {
	h     *talkServer
	timer act.Timer
	sleep *listener.Sleep
	due   time.Duration
	count int
}

func (x *sleeps) Act(t *act.Task) act.Directive {
	if x.sleep == nil {
		d := 1 + time.Duration(x.h.w.Rand().Int64N(int64(40*time.Millisecond)))
		x.sleep, x.due = &listener.Sleep{For: d}, x.h.w.Now()+d
		t.WakeAfter(&x.timer, d/2)
	}
	if d := x.sleep.Act(t); d != act.Done {
		return d
	}
	if x.h.w.Now() < x.due {
		x.h.w.Errorf("a sleep until %v has ended at %v", x.due, x.h.w.Now())
	}
	if x.sleep = nil; x.count > 50 {
		return act.Done
	}
	x.count++
	return act.Yield
}

// endsWithTimer ends with armed timers, which must be stopped when it has ended.
func (h *talkServer) endsWithTimer() func(t *act.Task) act.Directive {
	var tm, own act.Timer
	left := 20
	return func(t *act.Task) act.Directive {
		if own.Armed() {
			return act.Wait
		}
		if tm.Armed() {
			h.w.Errorf("a timer is armed for a task that has left")
		}
		if left--; left < 0 {
			return act.Done
		}
		t.Scheduler().Spawn(act.Func(func(t *act.Task) act.Directive {
			t.WakeAfter(&tm, time.Hour)
			return act.Done
		}))
		t.WakeAfter(&own, 100*time.Millisecond)
		return act.Wait
	}
}

// closesMailbox closes a mailbox between the check that finds it empty and the wait for it, as another thread may.
func (h *talkServer) closesMailbox() func(t *act.Task) act.Directive {
	box := listener.NewMailbox[int](1)
	var tm act.Timer
	begun, told := false, false
	return func(t *act.Task) act.Directive {
		switch {
		case tm.Armed():
			return act.Wait
		case begun && !told:
			h.w.Errorf("a task waits for a mailbox that was closed a second ago")
			return act.Done
		case begun:
			return act.Done
		}
		begun = true
		_, err := box.Take()
		box.Close()
		waits := false
		t.Scheduler().Spawn(act.Func(func(t *act.Task) act.Directive {
			if waits {
				told = true
				return act.Done
			}
			waits = true
			return listener.Next(t, err)
		}))
		t.WakeAfter(&tm, time.Second)
		return act.Wait
	}
}

// postsToAll posts to all schedulers, and checks that the posts run in order.
func (h *talkServer) postsToAll() func(t *act.Task) act.Directive {
	var tm act.Timer
	sent, seen := map[int]int{}, map[int]int{}
	left := 200
	return func(t *act.Task) act.Directive {
		if tm.Armed() {
			return act.Wait
		}
		if left--; left < 0 {
			return act.Done
		}
		all := t.Scheduler().Group().Schedulers()
		to := all[h.w.Rand().IntN(len(all))]
		for range 1 + h.w.Rand().IntN(100) {
			n := sent[to.Index()] + 1
			if to.Post(func(s *act.Scheduler) {
				if seen[s.Index()]++; seen[s.Index()] != n {
					h.w.Errorf("post %d is done as number %d", n, seen[s.Index()])
				}
			}) == nil {
				sent[to.Index()] = n
			}
		}
		t.WakeAfter(&tm, 20*time.Millisecond)
		return act.Wait
	}
}
