package worlds_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/shutdown"
)

// handling is how a handler receives.
type handling string

const (
	echoes   handling = "Receive" // and sends it back
	inPieces handling = "ReceivePiece"
	either   handling = "both"
	deaf     handling = "nobody"
)

// ending is how a handler ends.
type ending string

const (
	done     ending = "Done"
	fails    ending = "Failed"
	panics   ending = "a panic"
	closing1 ending = "Close" // and goes on receiving
	closing2 ending = "Close and Wait"
)

// handler is the action of a connection.
type handler struct {
	*server
	c    *client
	conn *websocket.Conn
	dice *rand.Rand

	// What it does.
	how     handling
	mirror  bool      // it sends back what it gets
	batch   int       // how much it receives in a turn
	own     []message // what else it sends
	pace    time.Duration
	outside bool // another task sends them
	notices int  // of the server, which another task pushes
	ending  ending
	after   int           // messages received
	until   time.Duration // when it ends at the latest
	naps    int           // how often it does not receive for a while
	awake   time.Duration // when it does again
	word    *message      // the last one, after a shutdown request
	status  status        // of Close

	// What has happened.
	timer   act.Timer
	due     time.Duration // when it sends the next one of own
	begun   bool
	kept    *message // waits for room
	got     int
	partial []byte
	sent    []sending
	taken   int // bytes of messages that were not pushed
	pusher  *pusher
	closes  *status // by itself
	ended   *end    // what Receive or Send has said at last
	ordered bool
	told    bool
	panics  bool
	blocked int
	over    bool
	overAt  time.Duration
}

// sending is a message that was sent.
type sending struct {
	message
	pushed bool
	at     time.Duration
}

// end is the last error of a connection.
type end struct {
	err    error
	status *status // of a CloseError
}

// String is for the report of a failure.
func (e *end) String() string {
	if e == nil {
		return "not"
	}
	return fmt.Sprint(e.err)
}

// handle makes the action of a connection.
func (h *server) handle(conn *websocket.Conn, r *httpd.Request) act.Action {
	var n int
	if _, err := fmt.Sscanf(string(r.Path()), "/%d", &n); err != nil || n >= len(h.clients) || h.clients[n].handler != nil {
		h.w.Errorf("a connection that was never made, or twice: %q", r.Path())
		return nil
	}
	c := h.clients[n]
	x := &handler{server: h, c: c, conn: conn, dice: rand.New(rand.NewPCG(c.Rand().Uint64(), 0)), how: c.handles}
	c.handler = x
	r2 := x.dice
	x.mirror, x.batch = r2.IntN(4) > 0 && x.how != deaf, from(r2, 1, 1, 3, 100)
	x.pace, x.outside = time.Duration(r2.Int64N(int64(from(r2, time.Microsecond, time.Millisecond, time.Second)))), r2.IntN(3) == 0
	for range from(r2, 0, 0, 1, 5, 30) {
		x.own = append(x.own, content(r2, from[byte](r2, text, binry), h.amount(r2)))
	}
	if c.silence > 0 && r2.IntN(3) == 0 { // more than may be queued
		x.pace = 0
		for range 40 {
			x.own = append(x.own, content(r2, binry, 65_000))
		}
	}
	if x.outside && r2.IntN(2) == 0 { // the last one finds no room
		x.own = append(x.own, content(r2, binry, 65_000))
	}
	x.notices = from(r2, 0, 0, 5, len(h.notices))
	if x.after, x.until = 1<<30, 1<<60; r2.IntN(3) == 0 {
		x.ending = from(r2, done, done, fails, panics, closing1, closing1, closing2)
		if x.how == deaf || r2.IntN(2) == 0 {
			x.until = h.w.Now() + time.Duration(r2.Int64N(int64(from(r2, time.Millisecond, time.Second, 10*time.Second))))
		} else {
			x.after = r2.IntN(len(c.messages) + 1)
		}
		if x.status.code = from(r2, 1000, 1008, 1013, 4000); r2.IntN(2) == 0 {
			x.status.reason = string(content(r2, text, r2.IntN(300)).data)
		}
	}
	if r2.IntN(8) == 0 {
		x.naps = 1 + r2.IntN(3)
	}
	if r2.IntN(2) == 0 {
		m := content(r2, text, r2.IntN(100))
		x.word = &m
	}
	return x
}

// echoes reports whether messages are answered by messages.
func (c *client) echoes() bool {
	return c.handler != nil && c.handler.mirror && c.handler.ended == nil && c.handler.closes == nil
}

// Act is a turn.
func (x *handler) Act(t *act.Task) act.Directive {
	if x.over {
		x.w.Errorf("a turn after the end\n%s", x.c.describe())
	}
	d := x.turn(t)
	if d == act.Done || d == act.Failed {
		x.leave()
	}
	return d
}

func (x *handler) leave() {
	x.timer.Stop()
	x.over, x.overAt = true, x.w.Now()
	x.running--
}

// Close is called in place of a further turn.
func (x *handler) Close() error {
	if !x.over {
		x.leave()
	}
	return nil
}

// Stop gets a shutdown request.
func (x *handler) Stop(*act.Task, shutdown.Order) {
	if x.told {
		x.w.Errorf("an order comes twice")
	}
	x.told = true
}

func (x *handler) turn(t *act.Task) act.Directive {
	if !x.begun {
		x.begun = true
		x.running++
		if x.outside || x.notices > 0 {
			x.pusher = &pusher{x: x}
			t.Scheduler().Spawn(x.pusher)
		}
	}
	if x.told && !x.ordered {
		if x.ordered = true; x.word != nil {
			_ = x.send(*x.word) // if there is room
		}
	}
	for range x.batch {
		if x.ended == nil && (x.got >= x.after || t.Scheduler().Now() >= x.until) {
			if d, over := x.end(t); over {
				return d
			}
		}
		if err := x.speak(t); err != nil {
			return x.next(t, err)
		}
		if x.how == deaf {
			x.wakeAt(t, x.until)
			t.Waker()
			return act.Wait
		}
		if t.Scheduler().Now() < x.awake || x.kept != nil {
			if x.kept == nil {
				x.wakeAt(t, x.awake)
			}
			x.wakeAt(t, x.until)
			t.Waker()
			return act.Wait
		}
		m, last, err := x.receive()
		if err != nil {
			return x.next(t, err)
		}
		if !x.take(m, last) {
			return act.Done
		}
		if x.naps > 0 && x.dice.IntN(3) == 0 {
			x.naps--
			x.awake = t.Scheduler().Now() + time.Duration(x.dice.Int64N(int64(15*time.Second)))
		}
	}
	return act.Yield
}

// speak sends what it has to send. If it returns nil there may be something left.
func (x *handler) speak(t *act.Task) error {
	for now := t.Scheduler().Now(); !x.outside && len(x.own) > 0 && now >= x.due; {
		if err := x.send(x.own[0]); err != nil {
			return err
		}
		x.due, x.own = now+x.pace, x.own[1:]
	}
	if !x.outside && len(x.own) > 0 {
		x.wakeAt(t, x.due)
	}
	if x.kept != nil {
		if err := x.send(*x.kept); err != nil {
			return err
		}
		x.kept = nil
	}
	return nil
}

func (x *handler) wakeAt(t *act.Task, when time.Duration) {
	if when < 1<<60 && (!x.timer.Armed() || x.timer.When() > when) {
		t.WakeAt(&x.timer, when)
	}
}

// send sends a message, and notes it if it was taken.
func (x *handler) send(m message) error {
	err := x.conn.Send(websocket.Type(m.opcode), m.data)
	switch _, blocked := err.(act.Blocked); {
	case err == nil && (x.ended != nil || x.closes != nil):
		x.w.Errorf("a message is taken after the end\n%s", x.c.describe())
	case err == nil:
		x.note(m, false)
	case blocked:
		if x.blocked++; x.blocked > 5000+x.c.Got/10 {
			x.w.Errorf("%d times without room\n%s", x.blocked, x.c.describe())
		}
	}
	return err
}

// note notes a message that was taken.
func (x *handler) note(m message, pushed bool) {
	x.sent = append(x.sent, sending{m, pushed, x.w.Now()})
	most := 1<<20 + max(x.high, 64<<10) // that of the network is less than 1 MiB
	if !pushed {
		x.taken += len(m.data)
	}
	if n := x.taken - x.c.Got; n > most+len(m.data) {
		x.w.Errorf("%d bytes are taken that the client has not read\n%s", n, x.c.describe())
	}
}

// push pushes a notice. If one is dropped, it knows which.
func (x *handler) push(n notice) error {
	before, push := x.conn.Dropped(), x.conn.Push
	if x.drops {
		push = x.conn.PushOrDrop
	}
	err := push(n.prepared)
	switch _, blocked := err.(act.Blocked); {
	case err == nil && (x.ended != nil || x.closes != nil):
		x.w.Errorf("a notice is taken after the end\n%s", x.c.describe())
	case err == nil:
		dropped := x.conn.Dropped() - before
		if dropped > 1 || dropped > 0 && !x.drops {
			x.w.Errorf("%d notices are dropped\n%s", dropped, x.c.describe())
		}
		x.note(n.message, true)
		if oldest := len(x.sent) - 1 - x.backlog; dropped > 0 {
			if oldest < x.c.got || !x.sent[oldest].pushed {
				x.w.Errorf("a notice is dropped, but %d do not wait\n%s", x.backlog, x.c.describe())
				return nil
			}
			x.sent = slices.Delete(x.sent, oldest, oldest+1)
		}
	case blocked:
		if x.drops {
			x.w.Errorf("a notice has to wait\n%s", x.c.describe())
		}
	}
	return err
}

func (x *handler) receive() (m websocket.Message, last bool, err error) {
	if x.how == echoes || x.how == either && x.dice.IntN(2) == 0 {
		m, err = x.conn.Receive()
		return m, true, err
	}
	return x.conn.ReceivePiece()
}

// take compares what was received with what was said.
func (x *handler) take(m websocket.Message, last bool) bool {
	if x.got >= len(x.c.messages) {
		if x.c.way != violates { // it may begin with a message
			x.w.Errorf("a message of %d bytes that was not sent\n%s", len(m.Data), x.c.describe())
			return false
		}
		return true
	}
	want := x.c.messages[x.got]
	x.partial = append(x.partial, m.Data...)
	if byte(m.Type) != want.opcode || !bytes.HasPrefix(want.data, x.partial) || last && len(want.data) != len(x.partial) {
		x.w.Errorf("%d bytes, type %d, last %v, in place of the %d. message of %d bytes, type %d\n%s", len(x.partial), m.Type, last, x.got,
			len(want.data), want.opcode, x.c.describe())
		return false
	}
	if !last {
		return true
	}
	x.got++
	x.seen.received++
	if x.partial = x.partial[:0]; x.mirror {
		x.kept = &want
	}
	return true
}

// end ends by itself.
func (x *handler) end(t *act.Task) (d act.Directive, over bool) {
	x.until, x.after = 1<<60, 1<<30
	switch x.ending {
	case done:
		x.shuts(1000, "")
		return act.Done, true
	case fails:
		x.shuts(1011, "")
		return t.Fail(party.ErrOnPurpose), true
	case panics:
		x.panics = true
		x.leave()
		panic(party.ErrOnPurpose)
	case closing1, closing2:
		x.shuts(x.status.code, x.status.reason)
		x.conn.Close(x.status.code, x.status.reason)
		if x.dice.IntN(4) == 0 {
			x.conn.Close(1000, "again")
		}
		if x.ending == closing2 {
			t.Waker()
			return act.Wait, true
		}
	}
	return 0, false
}

func (x *handler) shuts(code int, reason string) {
	if x.closes == nil {
		x.closes = &status{code, reason}
	}
}

// next ends a turn with an error.
func (x *handler) next(t *act.Task, err error) act.Directive {
	if _, blocked := err.(act.Blocked); !blocked {
		x.saw(err)
	} else if x.until < 1<<60 {
		x.wakeAt(t, x.until)
	}
	return x.conn.Next(t, err)
}

// saw checks the error with which the connection ends.
func (x *handler) saw(err error) {
	c := x.c
	x.ended = &end{err: err}
	wrong := func() {
		x.w.Errorf("the handler has got %v, and %d messages of %d\n%s", err, x.got, c.saidMessages(), c.describe())
	}
	e := (*websocket.CloseError)(nil)
	switch {
	case errors.As(err, &e):
		x.ended.status = &status{e.Code, e.Reason}
	case err == net.ErrClosed:
		if x.closes == nil && !x.ordered && !c.farewelled() && !c.violated() && x.gentle && !c.Left && !c.Half && !c.quiet && c.silence == 0 {
			wrong()
		}
		return
	default:
		if x.gentle && !c.Left {
			wrong()
		}
		return
	}
	if e.Code == 1006 {
		if x.gentle && !c.Left && !c.Half && !c.quiet && (c.silence == 0 || !x.timed) {
			wrong()
		}
		silent := !x.gentle && e.Reason != "" // what it has sent may still be on its way
		if c.Half && !silent && !c.quiet && c.whole == len(c.said) && x.got != c.saidMessages() && x.how != deaf &&
			x.closes == nil && !x.ordered {
			wrong()
		}
		return
	}
	for _, s := range c.said {
		switch {
		case s.breaks != 0:
			if e.Code != s.breaks || e.Reason == "" {
				wrong()
			}
			return
		case s.status != 0:
			if e.Code != s.status || s.status == c.status && e.Reason != c.reason && c.closed == nil {
				wrong()
			}
			if x.got != c.saidMessages() && x.how != deaf && x.closes == nil && !x.ordered {
				wrong()
			}
			return
		}
	}
	wrong()
}

// violated reports whether the client has broken the rules.
func (c *client) violated() bool {
	for _, s := range c.said {
		if s.breaks != 0 {
			return true
		}
	}
	return false
}

// pusher is another task that sends to the client.
type pusher struct {
	x     *handler
	next  int           // notice
	waits time.Duration // for room, since when; 0: it does not
	due   time.Duration
	timer act.Timer
}

// Act sends a message now and then.
func (p *pusher) Act(t *act.Task) act.Directive {
	x := p.x
	for x.outside && len(x.own) > 0 || p.next < x.notices {
		now := t.Scheduler().Now()
		if now < p.due {
			t.WakeAt(&p.timer, p.due)
			return act.Wait
		}
		var err error
		if x.outside && len(x.own) > 0 {
			if err = x.send(x.own[0]); err == nil {
				x.own = x.own[1:]
			}
		} else if err = x.push(x.server.notices[p.next]); err == nil {
			p.next++
		}
		switch err := err.(type) {
		case nil:
			p.due = now + x.pace
		case act.Blocked:
			err.Arm(t)
			p.waits = now
			return act.Wait
		default:
			return act.Done
		}
		p.waits = 0
	}
	if x.dice.IntN(4) == 0 && x.closes == nil && x.ended == nil && !x.over {
		x.shuts(4001, "pushed")
		x.conn.Close(4001, "pushed")
	}
	return act.Done
}

// Close stops the timer.
func (p *pusher) Close() error {
	p.timer.Stop()
	return nil
}
