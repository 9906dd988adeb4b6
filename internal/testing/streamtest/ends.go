package streamtest

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

func reset(t *testing.T, w Way) Scene {
	var c *listener.Conn
	var broken error
	var got string
	return Scene{Handle: func(under *listener.Conn) act.Action {
		c = under
		return task(c, func(*act.Task) error {
			in, err := c.Peek(100)
			if blocked(err) {
				return err
			}
			got, broken = string(in), err
			return io.EOF
		})
	}, Script: func(p *Peer) {
		p.Send("unread")
		p.Await("it has come", func() bool { return c != nil && c.Buffered() == 6 })
		p.Abort()
		p.Await("the task learns of it", func() bool { return broken != nil })
		p.Is("unread", func() any { return got })
		if !w.Local {
			require.NotEqual(t, io.EOF, broken)
		}
	}}
}

func resetOfWriter(t *testing.T, w Way) Scene {
	f := &filler{left: 4 << 20}
	var errs []error
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		f.c = c
		return task(c, func(task *act.Task) error {
			err := f.turn(task)
			if blocked(err) {
				return err
			}
			_, again := c.WriteString("x")
			errs = []error{again, c.Sent(), c.Push([]byte("x")), c.CloseWrite(), err}
			if !w.Local {
				_, errs[4] = c.Peek(1)
			}
			for i := range errs {
				if errs[i] == err {
					errs[i] = nil
				}
			}
			return io.EOF
		})
	}, Script: func(p *Peer) {
		p.Await("there is no room", func() bool { return f.full })
		p.Abort()
		p.Await("the writer learns of it", func() bool { return errs != nil })
		require.Equal(t, make([]error, 5), errs, "the error stays")
	}}
}

// witness is a task that calls Ended in every turn, and waits for nothing else.
type witness struct {
	c     *listener.Conn
	turns int
	half  bool
	err   error
	calls []error // of Read and Write, after err
}

func (x *witness) Act(t *act.Task) act.Directive {
	x.turns++
	if x.half, x.err = x.c.Ended(t); x.err != nil {
		_, read := x.c.Peek(100)
		_, write := x.c.Write(nil)
		x.calls = []error{read, write}
		return act.Done
	}
	return act.Wait
}

// notifies reports whether the Stream of c reports its end apart from its bytes.
func notifies(c *listener.Conn) bool {
	_, does := listener.As[monitor.CloseNotifier](c)
	return does
}

func ended(t *testing.T, _ Way) Scene {
	x := &witness{}
	return Scene{Handle: func(c *listener.Conn) act.Action {
		x.c = c
		return x
	}, Script: func(p *Peer) {
		p.Await("it waits", func() bool { return x.turns == 1 })
		p.Send("unread")
		p.Is(1, func() any { return x.turns })
		p.Send(", and more")
		p.Is(1, func() any { return x.turns })
		does := false
		p.On(func() { does = notifies(x.c) })
		require.NoError(t, p.Close())
		if does {
			p.Await("it is woken", func() bool { return x.turns > 1 })
			p.Is([]any{2, true, error(nil)}, func() any { return []any{x.turns, x.half, x.err} })
		}
		var in []byte
		p.Await("the bytes are there", func() bool {
			in, _ = x.c.Peek(100)
			return len(in) == len("unread, and more")
		})
		p.On(x.c.Abort)
		if does {
			p.Await("it is woken", func() bool { return x.err == net.ErrClosed })
		}
	}}
}

func endedByReset(t *testing.T, w Way) Scene {
	x := &witness{}
	return Scene{Handle: func(c *listener.Conn) act.Action {
		x.c = c
		_, _ = c.WriteString("never read") // for a Unix socket, whose peer goes with something unread
		return x
	}, Script: func(p *Peer) {
		p.Await("it waits", func() bool { return x.turns == 1 && x.c.Queued() == 0 })
		does := false
		p.On(func() { does = notifies(x.c) })
		p.Abort()
		if does {
			p.Await("it is woken", func() bool { return x.err != nil })
			require.Equal(t, []error{x.err, x.err}, x.calls)
		}
		p.On(x.c.Abort)
	}}
}

func closes(t *testing.T, _ Way) Scene {
	data := noise()[:300_000]
	limits := small
	limits.High = 1 << 20
	return Scene{Limits: limits, Handle: func(c *listener.Conn) act.Action {
		return task(c, func(*act.Task) error {
			if _, err := c.Peek(1); err != nil {
				return err
			}
			_, _ = c.Write(data)
			return io.EOF
		})
	}, Script: func(p *Peer) {
		p.Go(func() { _, _ = p.Write(noise()[:100_000]) })
		require.True(t, bytes.Equal(data, p.All()))
	}}
}

func lingers(t *testing.T, _ Way) Scene {
	limits := small
	limits.High, limits.Linger = 16<<20, 2*time.Second
	return Scene{Limits: limits, Handle: func(c *listener.Conn) act.Action {
		return task(c, func(*act.Task) error {
			_, _ = c.Write(noise()[:4<<20])
			return io.EOF
		})
	}, Script: func(p *Peer) {
		p.Expect(string(noise()[:1]))
		p.Is(1, func() any { return p.Open() })
		p.Pass(1900 * time.Millisecond)
		p.Is(1, func() any { return p.Open() })
		p.Pass(200 * time.Millisecond)
		p.Await("it is given up", func() bool { return p.Open() == 0 })
		p.Broken()
	}}
}

func aborts(t *testing.T, _ Way) Scene {
	var c *listener.Conn
	return Scene{Limits: small, Handle: func(under *listener.Conn) act.Action {
		c = under
		return task(c, func(*act.Task) error {
			_, err := c.Peek(1)
			if err != nil {
				return err
			}
			for err == nil {
				_, err = c.Write(noise()[:1000])
			}
			c.Abort()
			return io.EOF
		})
	}, Script: func(p *Peer) {
		p.Send("go")
		p.Broken()
		p.Is(nil, func() any { return c.LocalAddr() })
		if !p.Local {
			require.Equal(t, p.LocalAddr().String(), c.RemoteAddr().String(), "for a log")
		}
		p.Is([]any{0, net.ErrClosed}, func() any {
			n, err := c.Write(nil)
			return []any{n, err}
		})
	}}
}

func closedByAnother(t *testing.T, _ Way) Scene {
	f := &filler{left: 4 << 20}
	var errs []error
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		f.c = c
		wait := func(call func(t *act.Task) error) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				err := call(t)
				if !blocked(err) {
					errs = append(errs, err)
					return act.Done
				}
				return listener.Next(t, err)
			})
		}
		return act.All(
			wait(func(*act.Task) error { _, err := c.Peek(1); return err }),
			wait(f.turn),
			wait(func(*act.Task) error { return c.Sent() }))
	}, Script: func(p *Peer) {
		p.Await("all wait", func() bool { return f.full })
		p.Is(0, func() any { return len(errs) })
		p.On(func() { _ = f.c.Internals().CloseWithin(time.Millisecond) })
		p.Await("all are woken", func() bool { return len(errs) == 3 })
		require.Equal(t, []error{net.ErrClosed, net.ErrClosed, net.ErrClosed}, errs)
		p.Pass(time.Second)
	}}
}

func idle(t *testing.T, _ Way) Scene {
	var c *listener.Conn
	turns := 0
	return Scene{Handle: func(under *listener.Conn) act.Action {
		c = under
		return task(c, func(*act.Task) error {
			in, err := c.Peek(2)
			if err == nil {
				turns++
				_, _ = c.Write(in)
				c.Discard(len(in))
			}
			return err
		})
	}, Script: func(p *Peer) {
		since := func() any {
			at, is := c.IdleSince()
			return []any{is, (c.Scheduler().Now() - at).Round(time.Minute)}
		}
		p.Await("it waits", func() bool { return c != nil })
		reports := false
		p.On(func() { _, reports = listener.As[monitor.IdleReporter](c) })
		if !reports {
			p.Is(false, func() any { _, is := c.IdleSince(); return is })
			return
		}
		p.Pass(10 * time.Minute)
		p.Send("ab")
		p.Expect("ab")
		p.Pass(2 * time.Minute)
		p.Is([]any{true, 2 * time.Minute}, since)
		p.Send("a") // a part of a message
		p.Await("it has come", func() bool { return c.Buffered() == 1 })
		p.Is(false, func() any { _, is := c.IdleSince(); return is })
		p.Send("b")
		p.Expect("ab")
		p.Pass(time.Minute)
		p.Is([]any{true, time.Minute}, since)
		require.NoError(t, p.CloseWrite())
		require.Empty(t, p.All())
	}}
}
