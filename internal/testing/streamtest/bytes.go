package streamtest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// small are the Limits of connections whose room is soon full. TLS adds some bytes to what it queues.
var small = listener.Limits{High: 32 << 10, Low: 4 << 10, SendBuffer: 16 << 10}

const (
	gathered = 4 << 10 // of a turn: see Limits.High
	most     = 32<<10 + 32<<10/16 + gathered + 4<<10
)

// noise is more than sockets with the limits small hold on both sides.
var noise = sync.OnceValue(func() []byte {
	p := make([]byte, 6<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	return p
})

// task is an action that goes on as the error of each turn says. Next to input it waits for nothing.
func task(c *listener.Conn, turn func(t *act.Task) error) act.Action {
	return act.Func(func(t *act.Task) act.Directive { return c.Next(t, turn(t)) })
}

func blocked(err error) bool {
	_, is := err.(act.Blocked)
	return is
}

func echo(t *testing.T, _ Way) Scene {
	data := noise()[:300_000]
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		return task(c, func(*act.Task) error {
			in, err := c.Peek(1)
			if err == nil {
				var n int
				n, err = c.Write(in)
				c.Discard(n)
			}
			return err
		})
	}, Script: func(p *Peer) {
		p.Go(func() {
			_, _ = p.Write(data)
			_ = p.CloseWrite()
		})
		require.True(t, bytes.Equal(data, p.All()))
	}}
}

func end(t *testing.T, _ Way) Scene {
	var got, more []byte
	var ends []error
	return Scene{Handle: func(c *listener.Conn) act.Action {
		return task(c, func(*act.Task) error {
			in, err := c.Peek(5)
			if err != io.EOF {
				return err
			}
			got = bytes.Clone(in)
			_, again := c.Peek(5)
			c.Discard(len(in))
			more, err = c.Peek(1)
			ends = []error{again, err}
			_, _ = c.WriteString("answer")
			return err
		})
	}, Script: func(p *Peer) {
		p.Send("last")
		require.NoError(t, p.CloseWrite())
		require.Equal(t, "answer", string(p.All()))
		p.Is("last", func() any { return string(got) })
		p.Is([]error{io.EOF, io.EOF}, func() any { return ends })
		require.Empty(t, more)
	}}
}

func halfClose(t *testing.T, _ Way) Scene {
	data := noise()[:300_000]
	var late error
	var got bytes.Buffer
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		left, over := data, false
		return task(c, func(*act.Task) error {
			for len(left) > 0 {
				n, err := c.Write(left)
				if left = left[n:]; err != nil {
					return err
				}
			}
			if !over {
				over = true
				if err := c.CloseWrite(); err != nil {
					return err
				}
				_, late = c.WriteString("late")
			}
			in, err := c.Peek(1)
			got.Write(in)
			c.Discard(len(in))
			return err
		})
	}, Script: func(p *Peer) {
		require.True(t, bytes.Equal(data, p.All()))
		_, err := p.Write(data)
		require.NoError(t, err)
		require.NoError(t, p.CloseWrite())
		p.Await("all is read", func() bool { return got.Len() == len(data) })
		p.Is(true, func() any { return late != nil && !blocked(late) })
	}}
}

// filler is a task that writes for ever.
type filler struct {
	c       *listener.Conn
	written int
	queued  []int // in the turns in which it was woken
	highest int
	left    int
	full    bool
}

func (f *filler) turn(*act.Task) error {
	f.queued, f.full = append(f.queued, f.c.Queued()), false
	for f.left > 0 {
		n, err := f.c.Write(noise()[f.written:][:min(1000, f.left)])
		f.written, f.left = f.written+n, f.left-n
		f.highest = max(f.highest, f.c.Queued())
		if f.full = blocked(err); err != nil {
			return err
		}
	}
	return io.EOF
}

func room(t *testing.T, _ Way) Scene {
	f := &filler{left: 4 << 20}
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		f.c = c
		return task(c, f.turn)
	}, Script: func(p *Peer) {
		p.Await("there is no room", func() bool { return f.full })
		var written int
		p.On(func() { f.left = 1 << 20 })
		got := p.All()
		p.On(func() { written = f.written })
		require.True(t, bytes.Equal(noise()[:written], got))
		p.Is(true, func() any { return f.highest <= most })
		for _, n := range f.queued[1:] {
			require.LessOrEqual(t, n, small.Low+small.Low/16+100, "woken at the low mark, and not before")
		}
	}}
}

func peek(t *testing.T, _ Way) Scene {
	var got, more []byte
	var beyond error
	sent := noise()[:60_000]
	return Scene{Limits: listener.Limits{Read: 50_000}, Handle: func(c *listener.Conn) act.Action {
		return task(c, func(*act.Task) error {
			in, err := c.Peek(50_000)
			if got != nil {
				c.Discard(len(in))
			}
			if err != nil || got != nil {
				return err
			}
			got = bytes.Clone(in)
			more, beyond = c.Peek(50_001)
			more = bytes.Clone(more)
			return nil
		})
	}, Script: func(p *Peer) {
		p.Go(func() {
			for left := sent; len(left) > 0; left = left[100:] {
				_, _ = p.Write(left[:100])
			}
			_ = p.CloseWrite()
		})
		require.Empty(t, p.All())
		p.Is(listener.ErrTooLong, func() any { return beyond })
		require.True(t, bytes.Equal(sent[:50_000], got))
		require.True(t, bytes.Equal(got, more))
	}}
}

func kept(t *testing.T, _ Way) Scene {
	var c *listener.Conn
	var got bytes.Buffer
	highest := 0
	return Scene{Limits: listener.Limits{Read: 1000}, Handle: func(under *listener.Conn) act.Action {
		c = under
		return task(c, func(*act.Task) error {
			in, err := c.Peek(1000)
			highest = max(highest, len(in))
			if err == nil || err == io.EOF {
				got.Write(in)
				c.Discard(len(in))
			}
			return err
		})
	}, Script: func(p *Peer) {
		p.Send("x")
		p.Await("it is kept", func() bool { return c != nil && c.Buffered() == 1 })
		p.Send(string(noise()[:5000]))
		require.NoError(t, p.CloseWrite())
		require.Empty(t, p.All())
		p.Is(1000, func() any { return highest })
		require.Equal(t, "x"+string(noise()[:5000]), got.String())
	}}
}

// sending has a task that waits with Sent, after the end of this side or not.
func sending(end bool) func(t *testing.T, w Way) Scene {
	return func(t *testing.T, _ Way) Scene {
		var c *listener.Conn
		turns, over := 0, false
		data := noise()[:1<<20]
		limits := small
		limits.High = 32 << 20
		return Scene{Limits: limits, Handle: func(under *listener.Conn) act.Action {
			c = under
			return task(c, func(*act.Task) error {
				if turns++; turns == 1 {
					if err := c.Sent(); err != nil {
						return err // nothing was written
					}
					_, _ = c.Write(data)
					if end {
						_ = c.CloseWrite()
					}
				}
				err := c.Sent()
				if over = err == nil; over {
					return io.EOF
				}
				return err
			})
		}, Script: func(p *Peer) {
			p.Await("it waits", func() bool { return turns > 0 })
			p.Is(1, func() any { return turns })
			p.Is(false, func() any { return over || c.Queued() == 0 })
			require.True(t, bytes.Equal(data, p.All()))
			p.Is([]any{2, true}, func() any { return []any{turns, over} })
		}}
	}
}

func sent(t *testing.T, w Way) Scene         { return sending(false)(t, w) }
func sentAfterEnd(t *testing.T, w Way) Scene { return sending(true)(t, w) }

func readDeadline(t *testing.T, _ Way) Scene {
	var errs []error
	turns := 0
	return Scene{Handle: func(c *listener.Conn) act.Action {
		return task(c, func(task *act.Task) error {
			if turns++; turns == 1 {
				_ = c.SetReadDeadline(task.Scheduler().Clock().Wall().Add(2 * time.Second))
			}
			in, err := c.Peek(5)
			if err == os.ErrDeadlineExceeded && len(errs) == 0 {
				_, again := c.Peek(5)
				errs = append(errs, err, again)
				_, _ = c.WriteString("go on")
				_ = c.SetReadDeadline(time.Time{})
				_, err = c.Peek(5)
			}
			if err == nil {
				_, _ = c.Write(in)
				err = io.EOF
			}
			return err
		})
	}, Script: func(p *Peer) {
		p.Send("hel")
		p.Await("the deadline is set", func() bool { return turns > 0 })
		p.Is(0, func() any { return len(errs) })
		p.Pass(1900 * time.Millisecond)
		p.Is(0, func() any { return len(errs) })
		p.Pass(200 * time.Millisecond)
		p.Expect("go on")
		p.Is([]error{os.ErrDeadlineExceeded, os.ErrDeadlineExceeded}, func() any { return errs })
		p.Send("lo")
		require.Equal(t, "hello", string(p.All()))
	}}
}

func writeDeadline(t *testing.T, _ Way) Scene {
	f := &filler{left: 4 << 20}
	var read, wrote error
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		f.c = c
		_ = c.SetWriteDeadline(c.Scheduler().Clock().Wall().Add(2 * time.Second))
		return task(c, func(task *act.Task) error {
			wrote = f.turn(task)
			if wrote != os.ErrDeadlineExceeded {
				return wrote
			}
			_, read = c.Peek(1)
			_ = c.SetWriteDeadline(time.Time{})
			f.left = 0
			return io.EOF
		})
	}, Script: func(p *Peer) {
		p.Await("there is no room", func() bool { return f.full })
		p.Pass(1900 * time.Millisecond)
		p.Is(true, func() any { return blocked(wrote) })
		p.Pass(200 * time.Millisecond)
		p.Await("the deadline", func() bool { return wrote == os.ErrDeadlineExceeded })
		p.Is(true, func() any { return blocked(read) })
		require.True(t, bytes.Equal(noise()[:f.written], p.All()), "what was taken before is sent")
	}}
}

func bridge(t *testing.T, _ Way) Scene {
	data := noise()[:300_000]
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
			if _, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}); err != nil {
				return err
			}
			return c.(interface{ CloseWrite() error }).CloseWrite()
		}}
	}, Script: func(p *Peer) {
		p.Go(func() {
			_, _ = p.Write(data)
			_ = p.CloseWrite()
		})
		require.True(t, bytes.Equal(data, p.All()))
	}}
}
