package websocket_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// actor is an action made of functions, which notes what happens to it.
type actor struct {
	conn *websocket.Conn
	turn func(a *actor, t *act.Task) act.Directive
	log  []string
}

func (a *actor) Act(t *act.Task) act.Directive { return a.turn(a, t) }
func (a *actor) Close() error                  { a.log = append(a.log, "closed"); return nil }

func (a *actor) handler(c *websocket.Conn, _ *httpd.Request) act.Action {
	a.conn = c
	return a
}

// waits returns an action that never receives: it waits for whoever has its waker.
func waits() *actor {
	return &actor{turn: func(_ *actor, t *act.Task) act.Directive { t.Waker(); return act.Wait }}
}

func TestPingsAndPongs(t *testing.T) {
	w := newWorld(t)
	var ended error
	v := &websocket.Server{Handler: echo(&ended), Options: websocket.Options{Timeouts: websocket.Timeouts{Ping: 10 * time.Second, Pong: 3 * time.Second}}}
	c := w.dial(v, listener.Limits{})
	w.pass(9 * time.Second)
	c.send(text("a")) // a sign of life
	require.Equal(t, `text "a"`, c.next())
	w.pass(9 * time.Second)
	c.send(ping("b"))
	require.Equal(t, `pong "b"`, c.next(), "and no ping before it")
	w.pass(10 * time.Second)
	require.Equal(t, `ping ""`, c.next())
	w.pass(2 * time.Second)
	c.send(one(frame.Pong, ""))
	w.pass(9 * time.Second)
	c.send(text("c"))
	require.Equal(t, `text "c"`, c.next())
	w.pass(10 * time.Second)
	require.Equal(t, `ping ""`, c.next())
	w.pass(2900 * time.Millisecond)
	require.NoError(t, ended)
	w.pass(100 * time.Millisecond)
	var err *websocket.CloseError
	require.ErrorAs(t, ended, &err)
	require.Equal(t, 1006, err.Code)
	_, broken := c.Read(make([]byte, 1))
	require.Error(t, broken)
	require.Empty(t, w.Logs.FilterMessage("a task failed").All())
}

// A ping is no sign of life because the system takes it: with a completion engine that is some time after it was sent.
func TestASilentPeerIsCutOffOverCompletions(t *testing.T) {
	w := sim.New(sim.Options{})
	var ended error
	v := &websocket.Server{Handler: echo(&ended), Options: websocket.Options{Timeouts: websocket.Timeouts{Ping: 10 * time.Second, Pong: 3 * time.Second}}}
	tcp := &service.TCP{Address: "10.0.0.1:80", Handler: (&httpd.Server{Handler: v.Serve}).Serve}
	_, err := w.Server("web", act.Config{}, sim.Completions, tcp.Setup)
	require.NoError(t, err)
	w.Client("10.0.0.1:80", func(c *sim.Client) error {
		if _, err := io.WriteString(c, handshake+"\r\n"); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, c)
		if err == nil || w.Now().Round(time.Second) != 13*time.Second {
			return fmt.Errorf("after %v: %v", w.Now(), err)
		}
		return nil
	})
	require.NoError(t, w.Run())
	var closed *websocket.CloseError
	require.ErrorAs(t, ended, &closed)
	require.Equal(t, 1006, closed.Code)
}

// The bytes of a message are a sign of life, too.
func TestAMessageMayComeSlowly(t *testing.T) {
	w := newWorld(t)
	c := w.dial(&websocket.Server{Handler: echo(nil), Options: websocket.Options{Timeouts: websocket.Timeouts{Ping: 10 * time.Second}}}, listener.Limits{})
	header, payload := text("it takes its time")[:6], text("it takes its time")[6:]
	c.send(header)
	for i := range len(payload) {
		c.send(payload[i : i+1])
		w.pass(3 * time.Second)
	}
	require.Equal(t, `text "it takes its time"`, c.next(), "and no ping before it")
}

// An action that does not receive has its connection looked after as well, and is closed with it.
func TestAnActionThatDoesNotReceive(t *testing.T) {
	for name, end := range map[string]struct {
		f    func(c *client)
		told string
	}{
		"a close":           {func(c *client) { c.send(bye(1000, "")) }, `close 1000 ""`},
		"the end of input":  {func(c *client) { require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite()) }, ""},
		"no answer":         {func(c *client) { c.w.pass(time.Hour) }, "reset"},
		"a broken protocol": {func(c *client) { c.send("\xff") }, `close 1002 "a reserved bit is set"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := waits()
			c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
			c.send(ping("a"))
			require.Equal(t, `pong "a"`, c.next())
			end.f(c)
			w.Until("the action is closed", func() bool { return len(a.log) > 0 })
			if end.told != "reset" {
				require.Equal(t, end.told, c.rest())
			}
			require.Equal(t, []string{"closed"}, a.log)
		})
	}
}

// What is not received stays where it is, and is no silence; the pings behind it wait. A reset is noticed all the same.
func TestMessagesThatAreNotReceivedHoldUpThePeer(t *testing.T) {
	w := newWorld(t)
	turns := 0
	a := &actor{turn: func(_ *actor, t *act.Task) act.Directive { turns++; t.Waker(); return act.Wait }}
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{Read: 1000})
	c.send(ping("a"), text("b"), ping("c"))
	require.Equal(t, `pong "a"`, c.next())
	w.pass(10 * time.Minute)
	require.Less(t, turns, 100, "it does not spin")
	require.Empty(t, a.log)
	servertest.Reset(t, c.Conn)
	w.Until("the action is closed", func() bool { return len(a.log) > 0 })
}

// The close frame of a peer that leaves is behind a message that is not received, and the end of its input is no end of the
// connection. So a ping finds out.
func TestAPeerLeavesBehindAMessageThatIsNotReceived(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler, Options: websocket.Options{Timeouts: websocket.Timeouts{Ping: 10 * time.Second}}},
		listener.Limits{})
	c.send(text("a"), bye(1001, ""))
	require.NoError(t, c.Conn.Close())
	w.pass(9 * time.Second)
	require.Empty(t, a.log)
	w.pass(time.Second)
	w.Until("the action is closed", func() bool { return len(a.log) > 0 })
}

// A peer that sends pings and does not read gets the answer to the latest, and costs no memory.
func TestPingsOfAPeerThatDoesNotRead(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{High: 8 << 10})
	var err error
	sent := 0
	w.Turn(func(*act.Task) {
		for _, n := range []int{4000, 101} { // until there is no room for a pong either
			for err = nil; err == nil; sent++ {
				err = a.conn.Send(websocket.Binary, make([]byte, n))
			}
			sent--
		}
	})
	_, waits := err.(act.Blocked)
	require.True(t, waits, "%v", err)
	for i := range 1000 {
		c.send(ping(fmt.Sprint(i)))
	}
	for range sent {
		require.Contains(t, c.next(), "binary of ")
	}
	pongs, now := 0, ""
	for now != `pong "999"` {
		now = c.next()
		require.Contains(t, now, "pong")
		pongs++
	}
	require.Less(t, pongs, 10)
}

// A message of any size is taken if nothing else is queued, and arrives whole; the next one waits.
func TestLargeMessages(t *testing.T) {
	w := newWorld(t)
	var blocked error
	a := &actor{}
	large := []byte(strings.Repeat("0123456789abcdef", 1<<20))
	n := 0
	a.turn = func(a *actor, t *act.Task) act.Directive {
		for ; n < 3; n++ {
			if err := a.conn.Send(websocket.Text, large[:len(large)-n]); err != nil {
				blocked = err
				return a.conn.Next(t, err)
			}
		}
		_, err := a.conn.Receive()
		return a.conn.Next(t, err)
	}
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	require.NotNil(t, blocked)
	for i := range 3 {
		require.Equal(t, fmt.Sprint("text of ", len(large)-i), c.next())
	}
	c.send(bye(1000, ""))
	require.Equal(t, `close 1000 ""`, c.rest())
}

// An echo with little room sends everything back, in order, however slowly it is taken.
func TestBackPressure(t *testing.T) {
	w := newWorld(t)
	var ended error
	c := w.dial(&websocket.Server{Handler: echo(&ended)}, listener.Limits{High: 2000, Low: 100, Read: 1000})
	sent := make(chan error, 1)
	go func() {
		for i := range 3000 {
			if _, err := io.WriteString(c, text(fmt.Sprint(i, strings.Repeat("-", i)))); err != nil {
				sent <- err
				return
			}
		}
		_, err := io.WriteString(c, bye(1000, ""))
		sent <- err
	}()
	for i := range 3000 {
		if n := len(fmt.Sprint(i)) + i; n > 100 {
			require.Equal(t, fmt.Sprint("text of ", n), c.next())
		} else {
			require.Equal(t, fmt.Sprintf("text %q", fmt.Sprint(i, strings.Repeat("-", i))), c.next())
		}
	}
	require.Equal(t, `close 1000 ""`, c.rest())
	require.NoError(t, <-sent)
}

func TestManyMessagesInOneSegment(t *testing.T) {
	w := newWorld(t)
	got := 0
	a := &actor{turn: func(a *actor, t *act.Task) act.Directive {
		for range 64 {
			m, err := a.conn.Receive()
			if err != nil {
				return a.conn.Next(t, err)
			}
			if string(m.Data) == "x" {
				got++
			}
		}
		return act.Yield
	}}
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.Repeat(text("x"), 100_000)+bye(1000, ""))
		sent <- err
	}()
	require.Equal(t, `close 1000 ""`, c.rest())
	require.Equal(t, 100_000, got)
	require.NoError(t, <-sent)
}

// The ways in which this side closes, and what a client sees.
func TestEndsOfAnAction(t *testing.T) {
	broken := errors.New("it broke")
	for name, row := range map[string]struct {
		turn func(a *actor, t *act.Task) act.Directive
		told string
		log  int // of failures
	}{
		"done":   {func(*actor, *act.Task) act.Directive { return act.Done }, `close 1000 ""`, 0},
		"failed": {func(_ *actor, t *act.Task) act.Directive { return t.Fail(broken) }, `close 1011 ""`, 1},
		"with words": {func(a *actor, t *act.Task) act.Directive {
			_ = a.conn.Send(websocket.Text, []byte("bye"))
			return act.Done
		}, `text "bye", close 1000 ""`, 0},
		"closed": {func(a *actor, t *act.Task) act.Directive {
			a.conn.Close(4000, "enough")
			a.conn.Close(4001, "more than that")
			if err := a.conn.Send(websocket.Text, nil); err != net.ErrClosed {
				return t.Fail(fmt.Errorf("Send: %v", err))
			}
			_, err := a.conn.Receive()
			return a.conn.Next(t, err)
		}, `close 4000 "enough"`, 0},
		"closed, and waiting": {func(a *actor, t *act.Task) act.Directive {
			a.conn.Close(4000, "")
			t.Waker()
			return act.Wait
		}, `close 4000 ""`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := &actor{turn: row.turn}
			v := &websocket.Server{Handler: a.handler, Options: websocket.Options{Timeouts: websocket.Timeouts{Close: 3 * time.Second}}}

			c := w.dial(v, listener.Limits{}) // one that answers, behind a message that is thrown away
			long := text("ab") + begin("") + last(strings.Repeat("c", 2000))
			c.send(long[:100], long[100:], bye(1000, ""))
			require.Equal(t, row.told, c.rest())
			require.Equal(t, row.log, w.Logs.FilterMessage("a task failed").Len())

			c = w.dial(v, listener.Limits{}) // one that does not
			parts := strings.Split(row.told, ", ")
			for _, part := range parts {
				require.Equal(t, part, c.next())
			}
			c.send(long[:100], long[100:], ping("a")) // thrown away, and not answered any more
			w.pass(2900 * time.Millisecond)
			next, waits := w.S.NextDeadline()
			require.True(t, waits && next <= w.now+100*time.Millisecond, "it is waited for")
			w.pass(100 * time.Millisecond)
			require.Empty(t, c.rest())
			require.Equal(t, 2*row.log, w.Logs.FilterMessage("a task failed").Len())
		})
	}
}

// Without an action there is nothing to wait for.
func TestAHandlerWithoutAnAction(t *testing.T) {
	w := newWorld(t)
	none := func(*websocket.Conn, *httpd.Request) act.Action { return nil }
	c := w.dial(&websocket.Server{Handler: none}, listener.Limits{})
	c.send(bye(1000, ""))
	require.Equal(t, `close 1000 ""`, c.rest())
	require.Zero(t, w.Logs.FilterMessage("a task failed").Len())
}

func TestMistakesPanic(t *testing.T) {
	w := newWorld(t)
	a := waits()
	w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	require.Panics(t, func() { a.conn.Close(1005, "") })
	require.Panics(t, func() { a.conn.Close(999, "") })
	require.Panics(t, func() { _ = a.conn.Send(0, nil) })
	require.Panics(t, func() { (&websocket.Server{}).Serve(nil, nil) })
}

// drainer says something when an order comes.
type drainer struct{ actor }

func (d *drainer) Stop(*act.Task, shutdown.Order) { d.log = append(d.log, "stopped") }

func TestAnOrderIs1001(t *testing.T) {
	for name, says := range map[string]bool{"quiet": false, "with a last word": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := &drainer{}
			d.turn = func(a *actor, t *act.Task) act.Directive {
				if says && t.Order() != nil {
					_ = a.conn.Send(websocket.Text, []byte("good night"))
				}
				_, err := a.conn.Receive()
				return a.conn.Next(t, err)
			}
			v := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action { d.conn = c; return d }}
			c := w.dial(v, listener.Limits{})
			w.S.Shutdown(shutdown.Now{Terms: shutdown.Policy{Time: time.Minute, Drop: true}})
			if says {
				require.Equal(t, `text "good night"`, c.next())
			}
			require.Equal(t, `close 1001 ""`, c.next())
			c.send(bye(1001, ""))
			require.Empty(t, c.rest())
			require.Equal(t, []string{"stopped", "closed"}, d.log)
		})
	}
}

// On an order connections go on until their moment has come. The moments are spread evenly over the second half of the window, by the terms of the order.
func TestAnOrderIsSpread(t *testing.T) {
	const window = 8 * time.Second
	for name, row := range map[string]struct {
		terms shutdown.Policy
		told  string // the connections that have been told after each second
	}{
		"evenly":             {shutdown.Policy{Spread: window, Time: time.Minute, Drop: true}, "0 0 0 0 1 3 5 7 8"},
		"without a bound":    {shutdown.Policy{Spread: window}, "0 0 0 0 1 3 5 7 8"},
		"half of the time":   {shutdown.Policy{Spread: window, Time: window, Drop: true}, "0 0 1 5 8 8 8 8 8"},
		"at once":            {shutdown.Policy{Time: time.Minute, Drop: true}, "8 8 8 8 8 8 8 8 8"},
		"before its turns":   {shutdown.Policy{Spread: window, Turns: 10}, "0 0 0 0 1 3 5 7 8"},
		"announced":          {shutdown.Policy{Announce: 2500 * time.Millisecond, Spread: window / 2}, "0 0 0 0 0 3 7 8 8"},
		"longer than a life": {shutdown.Policy{Spread: 1 << 62}, "0 0 0 0 0 0 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			v := &websocket.Server{Handler: echo(nil)}
			said := make([]string, 8)
			all := make([]*client, len(said))
			for i := range all {
				all[i] = w.dial(v, listener.Limits{})
			}
			w.S.Shutdown(shutdown.Now{Terms: row.terms})
			var told []string
			for range 9 {
				servertest.Step(t, w.S)
				n := 0
				for i, c := range all {
					if said[i] != "" {
						n++
						continue
					}
					c.send(text("hello"))
					if said[i] = c.next(); said[i] == `text "hello"` {
						said[i] = ""
						continue
					}
					require.Equal(t, `close 1001 ""`, said[i])
					c.send(bye(1001, ""))
					require.Empty(t, c.rest())
					n++
				}
				told = append(told, fmt.Sprint(n))
				w.pass(time.Second)
			}
			require.Equal(t, row.told, strings.Join(told, " "))
		})
	}
}

// A stricter order brings the moment forward, and an action may end before it.
func TestAnOrderThatIsSpreadBecomesStricter(t *testing.T) {
	w := newWorld(t)
	v := &websocket.Server{Handler: echo(nil)}
	leaves := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			if t.Order() != nil {
				return act.Done
			}
			_, err := c.Receive()
			return c.Next(t, err)
		})
	}}
	first, second, third := w.dial(v, listener.Limits{}), w.dial(v, listener.Limits{}), w.dial(leaves, listener.Limits{})
	w.S.Shutdown(shutdown.Now{Terms: shutdown.Policy{Spread: 20 * time.Second}})
	require.Equal(t, `close 1000 ""`, third.next())
	w.pass(11 * time.Second)
	require.Equal(t, `close 1001 ""`, first.next())
	second.send(text("hello"))
	require.Equal(t, `text "hello"`, second.next())
	w.S.Shutdown(shutdown.Now{Terms: shutdown.Policy{Turns: 10}})
	require.Equal(t, `close 1001 ""`, second.next())
	for _, c := range []*client{first, second, third} {
		c.send(bye(1001, ""))
		require.Empty(t, c.rest())
	}
}

// What there was no room for is sent without a call of the connection's own task.
func TestAnotherTaskSends(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	var err error
	w.Turn(func(*act.Task) { err = a.conn.Send(websocket.Binary, make([]byte, 16<<20)) })
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint("binary of ", 16<<20), c.next())
}

// The task of a room sends to a member, more than there is room for.
func TestAnotherTaskSendsAndCloses(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	var errs [3]error
	w.Turn(func(*act.Task) {
		errs[0] = a.conn.Send(websocket.Binary, make([]byte, 16<<20))
		errs[1] = a.conn.Send(websocket.Text, []byte("no room"))
		a.conn.Close(4000, "slow")
		errs[2] = a.conn.Send(websocket.Text, []byte("closed"))
	})
	require.NoError(t, errs[0])
	_, waits := errs[1].(act.Blocked)
	require.True(t, waits, "%v", errs[1])
	require.Equal(t, net.ErrClosed, errs[2])
	require.Equal(t, fmt.Sprint("binary of ", 16<<20), c.next())
	require.Equal(t, `close 4000 "slow"`, c.next())
	c.send(bye(4000, ""))
	require.Empty(t, c.rest())
	require.Equal(t, []string{"closed"}, a.log)
}

// What a message has lent is valid in this turn, also after further calls; memory of the connection is not.
func TestMessagesAreLentForTheTurn(t *testing.T) {
	for name, row := range map[string]struct {
		compression bool
		says        func(i int) (says string, want []string)
	}{
		"plain": {false, func(i int) (string, []string) {
			word := fmt.Sprint(i, strings.Repeat("-", 100*i))
			return text(word) + begin("ab") + last("c"), []string{word, "abc"}
		}},
		"compressed": {true, func(i int) (string, []string) {
			word := fmt.Sprint(i, strings.Repeat("-", i*i*10))
			return squeezed(word) + text(word[:i+1]), []string{word, word[:i+1]}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var all []string
			a := &actor{turn: func(a *actor, t *act.Task) act.Directive {
				var lent [][]byte
				for {
					m, err := a.conn.Receive()
					if err != nil {
						for _, p := range lent {
							all = append(all, string(p))
						}
						return a.conn.Next(t, err)
					}
					lent = append(lent, m.Data)
				}
			}}
			v := &websocket.Server{Handler: a.handler, Options: websocket.Options{Compression: websocket.Compression{On: row.compression}}}
			c, _ := w.offer(v, listener.Limits{}, offers)
			var says strings.Builder
			var want []string
			for i := range 60 {
				p, messages := row.says(i)
				says.WriteString(p)
				want = append(want, messages...)
			}
			c.send(says.String(), bye(1000, ""))
			require.Equal(t, `close 1000 ""`, c.rest())
			require.Equal(t, want, all)
		})
	}
}

// Receive takes the rest of what was begun in pieces. Pieces come as bytes do.
func TestPieces(t *testing.T) {
	w := newWorld(t)
	var got []string
	a := &actor{turn: func(a *actor, t *act.Task) act.Directive {
		receive := a.conn.ReceivePiece
		if len(got) == 2 {
			receive = a.conn.Receive
		}
		m, err := receive()
		if err == nil {
			got = append(got, fmt.Sprintf("%d %q %v", m.Type, m.Data, m.Last))
		}
		return a.conn.Next(t, err)
	}}
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	long := text("abcdef")
	c.send(long[:7], long[7:8], long[8:10], long[10:], begin(""), last(""), bye(1000, ""))
	require.Equal(t, `close 1000 ""`, c.rest())
	require.Equal(t, []string{`1 "a" false`, `1 "b" false`, `1 "cdef" true`, `1 "" true`}, got)
}

func TestSubprotocol(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.connect(&websocket.Server{Handler: a.handler, Options: websocket.Options{Subprotocols: []string{"chat.v1"}}}, listener.Limits{})
	c.send(handshake + "Sec-WebSocket-Protocol: chat.v1\r\n\r\n")
	c.until("\r\n\r\n")
	require.Equal(t, "chat.v1", a.conn.Subprotocol())
}

func TestErrSaysHowAConnectionHasEnded(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	require.NoError(t, a.conn.Err())
	c.send(bye(3000, "enough"))
	require.Equal(t, &websocket.CloseError{Code: 3000, Reason: "enough"}, a.conn.Err())

	c = w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	w.Turn(func(*act.Task) { a.conn.Close(websocket.CodeNormal, "") })
	require.Equal(t, net.ErrClosed, a.conn.Err())
	c.send(bye(websocket.CodeNormal, ""))
	require.Equal(t, &websocket.CloseError{Code: websocket.CodeNormal}, a.conn.Err())
}

// What was broken: the connection was closed before the report, which then had no address.
func TestTheReportOfAFailureNamesThePeer(t *testing.T) {
	fails := act.Func(func(t *act.Task) act.Directive { return t.Fail(errors.New("why")) })
	sockets := &websocket.Server{Handler: func(*websocket.Conn, *httpd.Request) act.Action { return fails }}
	for name, handler := range map[string]httpd.Handler{
		"of HTTP":      func(*httpd.Response, *httpd.Request) act.Action { return fails },
		"of WebSocket": sockets.Serve,
	} {
		t.Run(name, func(t *testing.T) {
			socket := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: handler}).Serve}
			s := servertest.Start(t, act.Config{Schedulers: 1}, socket.Setup)
			c := servertest.Dial(t, socket.Addr())
			servertest.Send(t, c, handshake+"\r\n"+bye(1000, ""))
			_, err := io.ReadAll(c)
			require.NoError(t, err)
			require.NoError(t, c.Close())
			s.Group.Shutdown(servertest.Drain)
			require.NoError(t, s.End())
			lines := s.Logs.FilterMessage("a task failed").All()
			require.Len(t, lines, 1)
			require.Equal(t, c.LocalAddr().String(), lines[0].ContextMap()["peer"])
		})
	}
}
