package coro_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
	"github.com/stretchr/testify/require"
)

// The contract of net.Conn, case by case: nettest.TestConn uses a connection from many goroutines, which a Conn does not
// allow.

// late requires the error of a deadline as package net returns it.
func late(t require.TestingT, err error) {
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}

func TestReadAndTheEnd(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			l := bench(t)
			var log trace
			p, peer := converse(l, network, listener.Limits{}, func(c *coro.Conn) error {
				read := func(n int) {
					p := make([]byte, n)
					n, err := c.Read(p)
					log.add("%q", p[:n])
					if err != nil {
						log.add("%v", err)
					}
				}
				read(0)
				read(3)
				read(3)
				read(3)
				read(0)
				read(3)
				require.NoError(panicking{}, c.Close())
				read(0)
				read(3)
				return c.Close()
			})
			servertest.Send(t, peer, "hello")
			require.NoError(t, peer.(interface{ CloseWrite() error }).CloseWrite())
			require.NoError(t, p.end())
			closed := net.ErrClosed.Error()
			require.Equal(t, `"" "hel" "lo" "" EOF "" "" EOF "" `+closed+` "" `+closed, log.String())
		})
	}
}

func TestWhatIsClosedIsClosed(t *testing.T) {
	l := bench(t)
	p, _ := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
		require.NoError(panicking{}, c.Close())
		for name, f := range map[string]func() error{
			"Read":             func() error { _, err := c.Read(make([]byte, 1)); return err },
			"Write":            func() error { _, err := c.Write([]byte("x")); return err },
			"Write of nothing": func() error { _, err := c.Write(nil); return err },
			"WriteTo":          func() error { _, err := io.Copy(io.Discard, c); return err },
			"WriteTo itself":   func() error { _, err := io.Copy(c, c); return err },
			"CloseWrite":       c.CloseWrite,
			"SetDeadline":      func() error { return c.SetDeadline(time.Now()) },
			"SetReadDeadline":  func() error { return c.SetReadDeadline(time.Now()) },
			"SetWriteDeadline": func() error { return c.SetWriteDeadline(time.Now()) },
		} {
			require.ErrorIs(panicking{}, f(), net.ErrClosed, name)
		}
		require.Nil(panicking{}, c.LocalAddr())
		require.Nil(panicking{}, c.RemoteAddr())
		return c.Close()
	})
	require.NoError(t, p.end(), "a second Close")
}

// full writes until there is no room, and requires that a further write waits.
func full(c *coro.Conn) error {
	for {
		if _, err := c.Write(make([]byte, 64<<10)); err != nil {
			return err
		}
	}
}

func TestDeadlines(t *testing.T) {
	copying := func(c *coro.Conn) error { _, err := io.Copy(io.Discard, c); return err }
	for _, row := range []struct {
		name string
		set  func(c *coro.Conn, at time.Time) error
		wait func(c *coro.Conn) error
	}{
		{"Read", (*coro.Conn).SetReadDeadline, func(c *coro.Conn) error { _, err := c.Read(make([]byte, 1)); return err }},
		{"WriteTo", (*coro.Conn).SetReadDeadline, copying},
		{"WriteTo itself", (*coro.Conn).SetReadDeadline, echo},
		{"Write", (*coro.Conn).SetWriteDeadline, full},
		{"both", (*coro.Conn).SetDeadline, func(c *coro.Conn) error { return errors.Join(copying(c), full(c)) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			clock := &servertest.Clock{}
			clock.Pass(time.Second)
			l := timed(t, clock)
			p, _ := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
				if err := row.set(c, clock.Wall().Add(time.Hour)); err != nil {
					return err
				}
				err := row.wait(c)
				require.Equal(panicking{}, err, row.wait(c), "and again")
				c.Under().Abort()
				return err
			})
			l.For(0)
			clock.Pass(time.Hour - time.Millisecond)
			l.For(0)
			require.False(t, p.over)
			clock.Pass(time.Millisecond)
			late(t, p.end())
		})
	}
}

// It once woke the others only while the coroutine lived that the Conn was made for: here that has ended.
func TestCloseByAnotherCoroutineEndsARead(t *testing.T) {
	for name, wait := range map[string]func(c, to *coro.Conn) error{
		"Read":            func(c, _ *coro.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"Write":           func(c, _ *coro.Conn) error { return full(c) },
		"WriteTo":         func(c, _ *coro.Conn) error { _, err := io.Copy(io.Discard, c); return err },
		"WriteTo another": func(c, to *coro.Conn) error { _, err := io.Copy(to, c); return err },
		"WriteTo another that has no room": func(c, to *coro.Conn) error {
			for err := error(nil); err == nil; {
				_, err = to.Under().Write(make([]byte, 64<<10))
			}
			_, err := io.Copy(to, c)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			under, peer := l.Conn("tcp", listener.Limits{})
			other, _ := l.Conn("tcp", listener.Limits{})
			if strings.Contains(name, "no room") {
				servertest.Send(t, peer, "hello")
			}
			var closing act.Waker
			over := false
			p := play(l, func(co *coro.Co) (err error) {
				to := co.Conn(other)
				defer to.Under().Abort()
				var c *coro.Conn
				if err := co.Do(coro.New(func(co *coro.Co) error { c = co.Conn(under); return nil })); err != nil {
					return err
				}
				closer := func(co *coro.Co) error {
					_ = co.WaitUntil(func(t *act.Task) bool { closing = t.Waker(); return over })
					return c.Close()
				}
				return errors.Join(both(co, func(*coro.Co) error { err = wait(c, to); return nil }, closer), err)
			})
			l.For(0)
			require.False(t, p.over)
			over = true
			closing.Wake()
			require.ErrorIs(t, p.end(), net.ErrClosed)
		})
	}
}

func TestAConnIsForTheCoroutinesOfItsTask(t *testing.T) {
	const sentence = "panic: coro: a Conn was used outside of the coroutines of its task"
	uses := map[string]func(c, other *coro.Conn){
		"Read":     func(c, _ *coro.Conn) { _, _ = c.Read(make([]byte, 1)) },
		"Write":    func(c, _ *coro.Conn) { _, _ = c.Write(make([]byte, 1)) },
		"Close":    func(c, _ *coro.Conn) { _ = c.Close() },
		"io.Copy":  func(c, _ *coro.Conn) { _, _ = io.Copy(io.Discard, c) },
		"pour":     func(c, other *coro.Conn) { _, _ = io.Copy(other, c) },
		"be given": func(c, other *coro.Conn) { _, _ = io.Copy(c, other) },

		"CloseWrite":       func(c, _ *coro.Conn) { _ = c.CloseWrite() },
		"SetDeadline":      func(c, _ *coro.Conn) { _ = c.SetDeadline(time.Time{}) },
		"SetReadDeadline":  func(c, _ *coro.Conn) { _ = c.SetReadDeadline(time.Time{}) },
		"SetWriteDeadline": func(c, _ *coro.Conn) { _ = c.SetWriteDeadline(time.Time{}) },
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			s, logs := steppedScheduler(t)
			over := func(stream monitor.Stream) *listener.Conn { return listener.NewConn(s, stream, listener.Limits{}) }
			var kept *coro.Conn
			s.Spawn(coro.New(func(co *coro.Co) error {
				kept = co.Conn(over(&quiet{}))
				return co.Sleep(time.Hour)
			}))
			s.Spawn(coro.New(func(co *coro.Co) error { use(kept, co.Conn(over(&quiet{in: []byte("hello")}))); return nil }))
			s.Spawn(act.Func(func(*act.Task) act.Directive { use(kept, kept); return act.Done }))
			_, err := s.Step(3)
			require.NoError(t, err)
			require.Equal(t, []string{sentence, sentence}, failures(logs.All()))
		})
	}
	t.Run("one of a body that has not begun", func(t *testing.T) {
		s, logs := newScheduler(t, act.Config{})
		s.Spawn(act.Func(func(*act.Task) act.Directive {
			_, _ = new(coro.Co).Conn(nil).Read(nil)
			return act.Done
		}))
		require.NoError(t, s.Run())
		require.Equal(t, []string{sentence}, failures(logs.All()))
	})
}

// firehose is a Stream that always has input and always has room.
type firehose struct {
	quiet
	reads int
}

func (f *firehose) Lend(int) ([]byte, error) { f.reads++; return []byte("water"), nil }
func (f *firehose) AwaitInput(w act.Waker)   { w.Wake() }

// Other tasks have their turns however much a peer sends: a turn makes sixteen calls. One that copies to a Conn reads once,
// since the memory that a turn is lent is used again by the next one only.
func TestAFirehoseIsOneOfMany(t *testing.T) {
	f, p, written := &firehose{}, make([]byte, 5), 0
	read := func(c *coro.Conn) error { _, err := c.Read(p); return err }
	write := func(c *coro.Conn) error { _, err := c.Write(p); written++; return err }
	for name, call := range map[string]func(c *coro.Conn) error{
		"Read":           read,
		"Write":          write,
		"both":           func(c *coro.Conn) error { return errors.Join(read(c), write(c)) },
		"WriteTo":        func(c *coro.Conn) error { _, err := io.Copy(io.Discard, c); return err },
		"WriteTo itself": echo,
		"Read in many scopes": func(c *coro.Conn) error {
			return c.Co().Within(time.Hour, func() error { return read(c) })
		},
		"Peek and Unblock": func(c *coro.Conn) error {
			err := c.Co().Unblock(nil)
			_, _ = c.Under().Peek(1)
			c.Under().Discard(5)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := steppedScheduler(t)
			*f, written = firehose{}, 0
			c := listener.NewConn(s, f, listener.Limits{})
			var log trace
			s.Spawn(coro.New(func(co *coro.Co) error {
				conn := co.Conn(c)
				for {
					if err := call(conn); err != nil {
						return err
					}
				}
			}))
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				log.add("%d other", f.reads+written)
				return act.Yield
			}))
			_, err := s.Step(6)
			require.NoError(t, err)
			want := "16 other 32 other 48 other"
			if name == "WriteTo itself" {
				want = "1 other 2 other 3 other"
			}
			require.Equal(t, want, log.String())
			require.Error(t, s.Close())
			require.Zero(t, logs.Len(), logs.All())
		})
	}
}

func TestAWriteOfNothingWaitsForNoRoom(t *testing.T) {
	l := bench(t)
	p, _ := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
		for err := error(nil); err == nil; {
			_, err = c.Under().Write(make([]byte, 64<<10))
		}
		defer c.Under().Abort()
		return c.Co().Within(time.Hour, func() error {
			n, err := c.Write(nil)
			require.Zero(panicking{}, n)
			return err
		})
	})
	require.NoError(t, p.end())
}

// A coroutine says what it is suspended on.
func TestWaitsOfACoroutine(t *testing.T) {
	l := bench(t)
	box := listener.NewMailbox[int](1)
	f := future.New[int](l.S)
	p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		_, err := box.Take()
		if err := c.Co().Unblock(err); err != nil {
			return err
		}
		_, err = coro.Value(c.Co(), f)
		return err
	})
	l.UntilSaid("input from " + peer.LocalAddr().String())
	servertest.Send(t, peer, "x")
	l.UntilSaid("a value in a *listener.Mailbox[int]")
	require.NoError(t, box.Send(1))
	l.UntilSaid("a future")
	require.NoError(t, f.Resolve(1))
	require.NoError(t, p.end())
}

// eager is the recipe of the package's documentation.
type eager struct{ *coro.Conn }

func (e eager) Write(p []byte) (int, error) { return e.Under().Write(p) }

func (e eager) give(co *coro.Co, secret *tls.Conn, p []byte) error {
	for part := range slices.Chunk(p, 16<<10) {
		for err := e.Under().Sent(); err != nil; err = e.Under().Sent() {
			if err := co.Unblock(err); err != nil {
				return err
			}
		}
		if _, err := secret.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Each direction of a tls.Conn has a coroutine, and the client takes nothing before it has sent all.
func TestOneCoroutineReadsWhileTheOtherWrites(t *testing.T) {
	identity, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	data := noise(2 << 20)
	v := serve(t, func(c *coro.Conn) error {
		e := eager{c}
		secret := tls.Server(e, &tls.Config{Certificates: []tls.Certificate{identity}})
		if err := secret.Handshake(); err != nil {
			return err
		}
		return both(c.Co(), func(*coro.Co) error {
			got := make([]byte, len(data))
			if _, err := io.ReadFull(secret, got); err != nil || !bytes.Equal(data, got) {
				return errors.Join(err, errors.New("other bytes"))
			}
			return nil
		}, func(co *coro.Co) error { return e.give(co, secret, data) })
	})
	c := tls.Client(v.dial(), &tls.Config{RootCAs: roots, ServerName: "localhost"})
	_, err = c.Write(data)
	require.NoError(t, err)
	got := make([]byte, len(data))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, c.Close())
	v.drain()
}

func echo(c *coro.Conn) error {
	_, err := io.Copy(c, c)
	return err
}

func TestIOCopyToAndFromOtherThings(t *testing.T) {
	data := noise(8 << 20) // a Write of all has to wait for room
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	for name, body := range map[string]func(c *coro.Conn) error{
		"to a buffer and back": func(c *coro.Conn) error {
			var b bytes.Buffer
			if n, err := io.Copy(&b, c); err != nil || n != int64(len(data)) {
				return errors.Join(err, errors.New("copied less"))
			}
			_, err := io.Copy(c, &b)
			return err
		},
		"from a file": func(c *coro.Conn) error {
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			if _, err := io.Copy(c, f); err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, c)
			return err
		},
		"to itself": func(c *coro.Conn) error {
			n, err := io.Copy(c, c)
			require.EqualValues(panicking{}, len(data), n)
			return err
		},
		"Read and Write": func(c *coro.Conn) error {
			_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, body)
			require.NoError(t, echoed(v.dial(), data))
			v.drain()
		})
	}
}

// sink is a Writer that returns what the test says.
type sink func(p []byte) (int, error)

func (s sink) Write(p []byte) (int, error) { return s(p) }

func TestWriteToSaysWhatTheWriterSays(t *testing.T) {
	errNo := errors.New("no")
	for _, row := range []struct {
		name string
		w    sink
		n    int64
		want error
	}{
		{"all", func(p []byte) (int, error) { return len(p), nil }, 5, nil},
		{"less, without an error", func(p []byte) (int, error) { return len(p) - 2, nil }, 3, io.ErrShortWrite},
		{"an error", func([]byte) (int, error) { return 0, errNo }, 0, errNo},
		{"a part and an error", func([]byte) (int, error) { return 1, errNo }, 1, errNo},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := bench(t)
			p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
				n, err := c.WriteTo(row.w)
				require.Equal(panicking{}, row.n, n)
				return err
			})
			servertest.Send(t, peer, "hello")
			require.NoError(t, peer.(*net.TCPConn).CloseWrite())
			require.Equal(t, row.want, p.end())
		})
	}
}

// The buffer of a copy is not used for anything else while the Writer waits.
func TestCopiesThatWaitAtOnceDoNotMix(t *testing.T) {
	l := bench(t)
	var all []*played
	for range 3 {
		p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
			_, err := io.Copy(sink(func(p []byte) (int, error) {
				before := string(p)
				err := c.Co().Sleep(5 * time.Millisecond)
				require.Equal(panicking{}, before, string(p))
				return len(p), err
			}), c)
			return err
		})
		servertest.Send(t, peer, peer.LocalAddr().String()+peer.RemoteAddr().String())
		require.NoError(t, peer.Close())
		all = append(all, p)
	}
	for _, p := range all {
		require.NoError(t, p.end())
	}
}
