package streamtest

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// message returns one of n bytes with a number.
func message(number, n int) []byte {
	return binary.BigEndian.AppendUint32(bytes.Repeat([]byte{byte(number)}, n-4), uint32(number))
}

func pushDrops(t *testing.T, _ Way) Scene {
	var want bytes.Buffer
	lost, over := 0, false
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		n := 0
		return act.Func(func(t *act.Task) act.Directive {
			for range 10 {
				n++
				p := message(n, 4+n*37%6000)
				push := c.Push
				if n%3 > 0 {
					push = c.PushShared
				}
				err := push(p)
				_, full := err.(act.Blocked)
				switch {
				case err == nil:
					want.Write(p)
				case full:
					lost++
				default:
					return t.Fail(err)
				}
			}
			if over = n > 2000 && lost > 100; over {
				return act.Done
			}
			return act.Yield
		})
	}, Script: func(p *Peer) {
		p.Await("some are dropped", func() bool { return over })
		require.True(t, bytes.Equal(want.Bytes(), p.All()))
	}}
}

// pushWaits has many tasks whose messages a slow peer does not take: the first to wait go first, and all end.
func pushWaits(t *testing.T, _ Way) Scene {
	const tasks, messages, size = 12, 5, 3000
	limits := small
	limits.High, limits.Low = 3*size, size
	f := &filler{left: 4 << 20}
	var order, waited, served []int // tasks: by messages; tasks that waited for the first; of these, tasks that went on
	begun, left := 0, tasks
	return Scene{Limits: limits, Handle: func(c *listener.Conn) act.Action {
		f.c = c
		for err := error(nil); err == nil; {
			err = f.turn(nil)
		}
		for i := range tasks {
			n, first := 0, true
			c.Scheduler().Spawn(act.Func(func(t *act.Task) act.Directive {
				if first {
					first = false
					begun++
				}
				for ; n < messages; n++ {
					if err := c.Push(message(i, size)); err != nil {
						if len(order) == 0 && !slices.Contains(waited, i) {
							waited = append(waited, i)
						}
						return listener.Next(t, err)
					}
					order = append(order, i)
					if slices.Contains(waited, i) {
						served = append(served, i)
					}
				}
				if left--; left == 0 {
					_ = c.CloseWrite()
				}
				return act.Done
			}))
		}
		return task(c, func(*act.Task) error { _, err := c.Peek(1); return err })
	}, Script: func(p *Peer) {
		p.Await("all wait", func() bool { return begun == tasks })
		got := p.All()
		require.True(t, bytes.Equal(noise()[:f.written], got[:f.written]))
		got = got[f.written:]
		for n, i := range order {
			require.Equal(t, message(i, size), got[n*size:][:size])
		}
		require.Len(t, got, tasks*messages*size)
		if len(waited) > 1 {
			require.Equal(t, waited[0], served[0], "the first that has waited")
		}
	}}
}

// temporary returns a file of n bytes.
func temporary(t *testing.T, n int) *os.File {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, noise()[:n], 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func file(t *testing.T, _ Way) Scene {
	const size = 1 << 20
	f := temporary(t, size)
	var calls []int64
	return Scene{Handle: func(c *listener.Conn) act.Action {
		at := int64(0)
		_, _ = c.WriteString("head ")
		return act.Func(func(t *act.Task) act.Directive {
			n, err := c.SendFile(f, at, size-at)
			calls = append(calls, n)
			if at += n; at == size {
				_, _ = c.WriteString(" tail")
				return act.Done
			}
			return listener.Next(t, err)
		})
	}, Script: func(p *Peer) {
		got := p.All()
		require.True(t, bytes.Equal(append(append([]byte("head "), noise()[:size]...), " tail"...), got))
		for _, n := range calls {
			require.LessOrEqual(t, n, int64(512<<10))
		}
	}}
}

func shortFile(t *testing.T, _ Way) Scene {
	f := temporary(t, 7000)
	var n [2]int64
	var errs [2]error
	return Scene{Handle: func(c *listener.Conn) act.Action {
		return task(c, func(*act.Task) error {
			n[0], errs[0] = c.SendFile(f, 1000, 20_000)
			n[1], errs[1] = c.SendFile(f, 7000, 1)
			_, _ = c.WriteString("as it was")
			return io.EOF
		})
	}, Script: func(p *Peer) {
		require.Equal(t, string(noise()[1000:7000])+"as it was", string(p.All()))
		p.Is([2]error{io.ErrUnexpectedEOF, io.ErrUnexpectedEOF}, func() any { return errs })
		p.Is([2]int64{6000, 0}, func() any { return n })
	}}
}

func fileDeadline(t *testing.T, _ Way) Scene {
	const size = 4 << 20
	f := temporary(t, size)
	var last error
	at := int64(0)
	return Scene{Limits: small, Handle: func(c *listener.Conn) act.Action {
		_ = c.SetWriteDeadline(c.Scheduler().Clock().Wall().Add(2 * time.Second))
		return act.Func(func(t *act.Task) act.Directive {
			n, err := c.SendFile(f, at, size-at)
			at, last = at+n, err
			if err == os.ErrDeadlineExceeded {
				return act.Done
			}
			return listener.Next(t, err)
		})
	}, Script: func(p *Peer) {
		p.Await("there is no room", func() bool { return blocked(last) })
		p.Pass(1900 * time.Millisecond)
		p.Is(true, func() any { return blocked(last) })
		p.Pass(200 * time.Millisecond)
		p.Await("the deadline", func() bool { return last == os.ErrDeadlineExceeded })
		require.True(t, bytes.Equal(noise()[:at], p.All()))
	}}
}
