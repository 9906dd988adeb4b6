package coroutine

import (
	"bytes"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd/websocket"
)

// Conn is a websocket.Conn for coroutines. All coroutines of its task may use it: of two coroutines in an act.All, one may
// read while the other writes. Elsewhere Read, Write and Close panic.
//
// To bound a call, make it within coro.Co's Within, WithContext or UntilOrder. A call that was cut short has done nothing. What a
// Conn does not have, such as ReceivePiece and Push, the websocket.Conn has that was given to New; see Co.Unblock for their
// errors.
type Conn struct {
	under *websocket.Conn
	co    *coro.Co
}

// New returns the action of a connection, for Handler of a websocket.Server or a websocket.Client, which runs f as a
// coroutine. When f returns nil, or an error that says that the connection has ended, the connection is closed with code
// 1000, if it is not closed yet. With another error it is closed with 1011, and the action fails.
//
// f begins in the first turn of the action, so a Handler must take from the Request beforehand what f needs of it. When the
// connection has ended, the call that waits returns why. If f then waits for something else, it is stopped, as package coro
// says. After a shutdown request f has one more turn, in which its calls in UntilOrder return. Messages that it sends in
// that turn still go out, and the connection is closed with code 1001, or later if the shutdown has a Spread.
func New(c *websocket.Conn, f func(*Conn) error) act.Action {
	if f == nil {
		panic("coroutine: New without a function")
	}
	return &action{Child: act.Child{Action: coro.New(func(co *coro.Co) error { return f(&Conn{c, co}) })}}
}

// action is the coroutine of a connection.
type action struct {
	act.Child
	ordered bool // it has had the turn after a shutdown request
}

// Act gives the turn that comes after a shutdown request, the last one in which messages can be sent, twice to a coroutine
// that ends it at once: that is how its call in UntilOrder is cut short.
func (a *action) Act(t *act.Task) act.Directive {
	d := a.Child.Act(t)
	if !a.ordered && t.Order() != nil {
		if a.ordered = true; d == act.Yield {
			return a.Child.Act(t)
		}
	}
	return d
}

// Co returns the coroutine of the connection, the one that runs f of New, to sleep in it or to bound a call.
func (c *Conn) Co() *coro.Co { return c.co }

// Read waits for the next message and returns it whole, in memory that the caller owns. The error is a *websocket.CloseError
// if the connection has ended, net.ErrClosed after Close, an error of the system call, or an error that stops the coroutine
// from waiting (see coro.Co).
func (c *Conn) Read() (m websocket.Message, err error) {
	err = c.wait(func() (err error) {
		m, err = c.under.Receive()
		return err
	})
	m.Data = bytes.Clone(m.Data)
	return m, err
}

// Write sends a message, and waits until there is room for all of it. It keeps nothing of p. The error is net.ErrClosed
// after Close, and when the connection has ended; an error of the system call; or an error that stops the coroutine from
// waiting (see coro.Co).
func (c *Conn) Write(t websocket.Type, p []byte) error {
	return c.wait(func() error { return c.under.Send(t, p) })
}

// wait calls f until it no longer blocks.
func (c *Conn) wait(f func() error) error {
	for co := c.co.Caller(); ; {
		if err := co.Unblock(nil); err != nil { // a turn has so many calls
			return err
		}
		err := f()
		if _, waits := err.(act.Blocked); !waits {
			return err
		}
		if err := co.Unblock(err); err != nil {
			return err
		}
	}
}

// Close begins the close handshake with a code and a reason, and returns at once: see websocket.Conn.Close. Other coroutines of
// the task that wait for the connection get net.ErrClosed. Close panics on a code that is not allowed, and outside of the
// coroutines of the task.
func (c *Conn) Close(code int, reason string) {
	c.co.Caller()
	c.under.Close(code, reason)
}
