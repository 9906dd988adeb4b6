package coro_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/listener"
)

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
			v := serve(t, echo)
			l := bench(t)
			p := play(l, func(co *coro.Co) error {
				for range 3 {
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
	v := serve(t, echo)
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
	var wrong *net.OpError
	require.ErrorAs(t, p.end(), &wrong)
	require.Equal(t, refused, wrong.Err)
	v.drain() // which waits for the server to see that the client has gone
}

func TestABodyThatPanicsKeepsNoConnectionThatItHasDialled(t *testing.T) {
	v := serve(t, echo)
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

func TestADeferredWaitIsRefused(t *testing.T) {
	var under *listener.Conn
	for name, wait := range map[string]func(co *coro.Co) error{
		"Yield":   (*coro.Co).Yield,
		"Sleep":   func(co *coro.Co) error { return co.Sleep(0) },
		"Await":   func(co *coro.Co) error { return co.WaitUntil(func(*act.Task) bool { return true }) },
		"Unblock": func(co *coro.Co) error { return co.Unblock(nil) },
		"Unblock what waits": func(co *coro.Co) error {
			_, empty := listener.NewMailbox[int](1).Take()
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
