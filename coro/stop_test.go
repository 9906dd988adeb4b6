package coro_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// A body with a connection can be stopped wherever it waits: the call returns ErrStopped, deferred functions run, and
// nothing is left of it.
func TestABodyWithAConnectionIsStoppedWhereverItWaits(t *testing.T) {
	serverSide, clientSide := identities(t)
	crowded := func(to *coro.Conn) {
		for err := error(nil); err == nil; {
			_, err = to.Under().Write(make([]byte, 64<<10))
		}
	}
	for name, wait := range map[string]func(c, other *coro.Conn) error{
		"Read":  func(c, _ *coro.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"Write": func(c, _ *coro.Conn) error { return full(c) },
		"WriteTo, for input": func(c, other *coro.Conn) error {
			_, err := io.Copy(c, other)
			return err
		},
		"WriteTo, for room": func(c, other *coro.Conn) error {
			crowded(other)
			_, err := io.Copy(other, c)
			return err
		},
		"WriteTo a Writer, for input": func(c, _ *coro.Conn) error { _, err := io.Copy(io.Discard, c); return err },
		"WriteTo a Writer that waits": func(c, other *coro.Conn) error {
			crowded(other)
			_, err := io.Copy(bufio.NewWriterSize(other, 16), c)
			return err
		},
		"Dial of a name": func(c, _ *coro.Conn) error {
			_, err := coro.Dial(c.Co(), "localhost:1", listener.Limits{})
			if refused := (*listener.ConnectError)(nil); errors.As(err, &refused) {
				return c.Co().Sleep(time.Hour) // it was faster
			}
			return err
		},
		"a handshake": func(c, _ *coro.Conn) error { return tls.Server(c, serverSide).Handshake() },
		"a handshake of a client": func(_, other *coro.Conn) error {
			return tls.Client(other, clientSide).Handshake()
		},
		"Flush": func(c, other *coro.Conn) error {
			crowded(other)
			w := bufio.NewWriter(other)
			_, _ = w.WriteString("hello")
			return w.Flush()
		},
		"Flush in a deferred function": func(c, other *coro.Conn) (err error) {
			crowded(other)
			w := bufio.NewWriter(other)
			_, _ = w.WriteString("hello")
			defer func() { err = w.Flush() }()
			return nil
		},
		"the last turn of its calls": func(c, other *coro.Conn) error {
			for {
				if _, err := c.Read(nil); err != nil {
					return err
				}
			}
		},
		"Unblock": func(c, other *coro.Conn) error {
			crowded(other)
			for {
				if err := c.Co().Unblock(other.Under().Sent()); err != nil {
					return err
				}
			}
		},
		"two at once": func(c, other *coro.Conn) error {
			return both(c.Co(), func(*coro.Co) error { return full(other) }, func(*coro.Co) error {
				_, err := other.Read(make([]byte, 1))
				return err
			})
		},
		"Offload": func(c, _ *coro.Conn) error {
			done := c.Co().Context().Done()
			_, err := coro.Offload(c.Co(), func() (int, error) { <-done; return 1, nil })
			return err
		},
		"Value": func(c, _ *coro.Conn) error {
			_, err := coro.Value(c.Co(), future.New[int](c.Co().Scheduler()))
			return err
		},
	} {
		for _, how := range []string{"Close", "an order that drops", "an order whose time is over"} {
			t.Run(name+", by "+how, func(t *testing.T) {
				l := bench(t)
				under, _ := l.Conn("tcp", listener.Limits{})
				var log trace
				var got error
				p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
					defer c.Under().Abort()
					other := c.Co().Conn(under)
					defer other.Under().Abort()
					defer log.add("deferred")
					got = wait(c, other)
					return got
				})
				if name != "WriteTo, for input" && name != "a handshake" && name != "Read" && name != "WriteTo a Writer, for input" {
					servertest.Send(t, peer, "hello")
				}
				l.For(2 * time.Millisecond)
				require.False(t, p.over, "%v", p.err)
				switch how {
				case "Close":
					require.Error(t, l.S.Close())
				case "an order that drops":
					l.S.Shutdown(servertest.Cut)
					require.Error(t, l.S.Run())
				case "an order whose time is over":
					l.S.Shutdown(shutdown.Now{Terms: shutdown.Policy{Time: time.Millisecond, Drop: true}})
					require.Error(t, l.S.Run())
				}
				require.True(t, p.over)
				if name != "two at once" { // what All makes of it is not asked for: who did it is stopped first
					require.ErrorIs(t, got, coro.ErrStopped)
				}
				require.Equal(t, "deferred", log.String())
				live, resting := audit.Coroutines(l.S)
				require.Zero(t, live+resting)
			})
		}
	}
}

// A connection that is or becomes established when its Dial is given up is closed.
func TestADialThatIsStoppedLeavesNoDescriptor(t *testing.T) {
	for _, network := range networks {
		v := serve(t, network, echo)
		for steps := range 6 {
			l := bench(t)
			var got error
			var c *coro.Conn
			p := play(l, func(co *coro.Co) error {
				c, got = coro.Dial(co, v.address(), listener.Limits{})
				if got == nil {
					c.Under().Abort()
				}
				return got
			})
			for range steps {
				_, err := l.S.Step(1)
				require.NoError(t, err)
			}
			_ = l.S.Close()
			if steps > 0 && !errors.Is(got, coro.ErrStopped) {
				require.NoError(t, got)
				require.True(t, p.over)
			}
		}
		v.drain()
	}
	l := bench(t)
	p := play(l, func(co *coro.Co) error {
		_, err := coro.Dial(co, "unix:"+filepath.Join(servertest.ShortDir(t), "nobody"), listener.Limits{})
		return err
	})
	require.Error(t, p.end())
}

// The unwinding at the second call once skipped the function that was going to close.
func TestAStoppedBodyKeepsNoConnectionThatItHasDialled(t *testing.T) {
	for name, end := range map[string]func(co *coro.Co, c *coro.Conn) error{
		"by a time-out, and cleaning up for too long": func(co *coro.Co, c *coro.Conn) error {
			defer func() {
				for range 3 {
					_, _ = c.Write([]byte("bye"))
				}
				_ = c.Close()
			}()
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"by a time-out, and not cleaning up": func(co *coro.Co, c *coro.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, "tcp", echo)
			l := bench(t)
			p := play(l, func(co *coro.Co) error {
				for range 20 {
					err := co.Do(listener.Within(20*time.Millisecond, coro.New(func(co *coro.Co) error {
						c, err := coro.Dial(co, v.address(), listener.Limits{})
						if err != nil {
							return err
						}
						return end(co, c)
					})))
					require.ErrorIs(panicking{}, err, os.ErrDeadlineExceeded)
				}
				return nil
			})
			require.NoError(t, p.end()) // and bench counts the descriptors
			v.drain()
		})
	}
}

func TestAFilterCanRefuseWhatABodyHasDialled(t *testing.T) {
	v := serve(t, "tcp", echo)
	l := bench(t)
	refused := errors.New("refused")
	p := play(l, func(co *coro.Co) error {
		ready := func(*listener.Conn) act.Action { return nil }
		no := func(*listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive { return t.Fail(refused) })
		}
		c, err := coro.Dial(co, v.address(), listener.Limits{}, ready, no)
		require.Nil(panicking{}, c)
		return err
	})
	var wrong *listener.ConnectError
	require.ErrorAs(t, p.end(), &wrong)
	require.Equal(t, refused, wrong.Err)
	v.drain() // which waits for the server to see that the client has gone
}

func TestABodyThatPanicsKeepsNoConnectionThatItHasDialled(t *testing.T) {
	v := serve(t, "tcp", echo)
	s, logs := newScheduler(t, act.Config{})
	s.Spawn(coro.New(func(co *coro.Co) error {
		_, err := coro.Dial(co, v.address(), listener.Limits{})
		require.NoError(panicking{}, err)
		panic("boom")
	}))
	require.NoError(t, s.Run())
	require.Equal(t, []string{"panic: boom"}, failures(logs.All()))
	v.drain() // which waits for the server to see that the client has gone
}

// Deferred functions of the usual kind: one flushes, one ends TLS, one closes.
func TestDeferredFunctionsOfAStoppedBodyDoWhatTheyCan(t *testing.T) {
	serverSide, clientSide := identities(t)
	ends := make(chan string, 3)
	begun := make(chan bool)
	v := serving{cfg: act.Config{Schedulers: 1}, handler: coro.Serve(func(c *coro.Conn) error {
		defer func() { ends <- "close"; _ = c.Close() }()
		secret := tls.Server(c, serverSide)
		if err := secret.Handshake(); err != nil {
			return err
		}
		defer func() { ends <- "tls"; _ = secret.Close() }()
		w := bufio.NewWriter(secret)
		defer func() { ends <- "flush"; _ = w.Flush() }()
		_, _ = w.WriteString("hello")
		close(begun)
		return c.Co().Sleep(time.Hour)
	})}.start(t)
	v.trust(clientSide)
	servertest.Receive(t, begun)
	v.Group.Shutdown(servertest.Cut)
	require.Error(t, v.End())
	require.Equal(t, "flush", servertest.Receive(t, ends))
	require.Equal(t, "tls", servertest.Receive(t, ends))
	require.Equal(t, "close", servertest.Receive(t, ends))
	require.Empty(t, v.failures())
}

func TestADeferredWaitIsRefused(t *testing.T) {
	var under *listener.Conn
	for name, wait := range map[string]func(co *coro.Co) error{
		"Yield":   (*coro.Co).Yield,
		"Sleep":   func(co *coro.Co) error { return co.Sleep(0) },
		"Await":   func(co *coro.Co) error { return co.Await(func(*act.Task) bool { return true }) },
		"Unblock": func(co *coro.Co) error { return co.Unblock(nil) },
		"Unblock what waits": func(co *coro.Co) error {
			_, empty := monitor.NewMailbox[int](1).Take()
			return co.Unblock(empty)
		},
		"a scope": func(co *coro.Co) error { return co.UntilOrder(func() error { return nil }) },
		"Read": func(co *coro.Co) error {
			_, err := co.Conn(under).Read(make([]byte, 1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			under = listener.NewConn(l.S, &firehose{}, listener.Limits{})
			var got error
			p := play(l, func(co *coro.Co) error {
				defer func() { got = wait(co) }()
				return co.Sleep(time.Hour)
			})
			_, err := l.S.Step(1)
			require.NoError(t, err)
			require.Error(t, l.S.Close())
			require.True(t, p.over)
			require.ErrorIs(t, got, coro.ErrStopped)
		})
	}
}
