package coroutine_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/coroutine"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type body func(*coroutine.Conn) error

// world is a server and its clients, all of them coroutines.
type world struct {
	*servertest.Running
	socket *service.TCP
	ended  chan error // what the bodies of the server have returned
}

func start(t *testing.T, limits listener.Limits, f body) *world {
	w := &world{ended: make(chan error, 100)}
	sockets := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
		return coroutine.New(c, func(c *coroutine.Conn) (err error) {
			defer func() { w.ended <- err }()
			return f(c)
		})
	}}
	w.socket = &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: sockets.Serve}).Serve, Limits: limits}
	w.Running = servertest.Start(t, act.Config{Schedulers: 2}, w.socket.Setup)
	return w
}

// visit runs f as a client, in a coroutine that dials, and returns what f has returned, and the whole.
func (w *world) visit(limits listener.Limits, f body) (err, whole error) {
	w.T.Helper()
	ended := make(chan [2]error, 1)
	w.Group.Schedulers()[1].Post(func(s *act.Scheduler) {
		s.Spawn(coro.New(func(co *coro.Co) error {
			var both [2]error
			dial := &websocket.Client{URL: "ws://" + w.socket.Addr().String(), Limits: limits, Handler: func(c *websocket.Conn) act.Action {
				return coroutine.New(c, func(c *coroutine.Conn) error {
					both[0] = f(c)
					return both[0]
				})
			}}
			both[1] = co.Do(dial.Dial())
			ended <- both
			return nil
		}))
	})
	both := servertest.Receive(w.T, ended)
	return both[0], both[1]
}

func (w *world) end() {
	w.T.Helper()
	w.Group.Shutdown(servertest.Drain)
	require.NoError(w.T, w.End())
}

func echo(c *coroutine.Conn) error {
	for {
		m, err := c.Read()
		if err != nil {
			return err
		}
		if err := c.Write(m.Type, m.Data); err != nil {
			return err
		}
	}
}

func TestReadAndWrite(t *testing.T) {
	w := start(t, listener.Limits{}, echo)
	err, whole := w.visit(listener.Limits{}, func(c *coroutine.Conn) error {
		var kept [][]byte
		for i := range 200 {
			p := bytes.Repeat([]byte{byte(i)}, i*i)
			if err := c.Write(websocket.Binary, p); err != nil {
				return err
			}
			m, err := c.Read()
			if err != nil {
				return err
			}
			kept = append(kept, m.Data)
		}
		for i, p := range kept { // they are the caller's
			if !bytes.Equal(p, bytes.Repeat([]byte{byte(i)}, i*i)) {
				return fmt.Errorf("message %d: %d bytes", i, len(p))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, whole)
	require.EqualError(t, servertest.Receive(t, w.ended), "websocket: closed with code 1000")
	w.end()
	require.Empty(t, w.Logs.FilterMessage("a task failed").All())
}

// One coroutine reads while the other writes, more than there is room for.
func TestTwoCoroutines(t *testing.T) {
	const n = 2000
	w := start(t, listener.Limits{High: 8 << 10}, echo)
	got := 0
	err, whole := w.visit(listener.Limits{High: 8 << 10}, func(c *coroutine.Conn) error {
		return c.Co().Do(act.All(
			coro.New(func(*coro.Co) error {
				for i := range n {
					if err := c.Write(websocket.Text, fmt.Appendf(nil, "%05d%*s", i, i, "")); err != nil {
						return err
					}
				}
				return nil
			}),
			coro.New(func(*coro.Co) error {
				for ; got < n; got++ {
					m, err := c.Read()
					if err != nil {
						return err
					}
					if want := fmt.Sprintf("%05d%*s", got, got, ""); string(m.Data) != want {
						return fmt.Errorf("%q instead of %q", m.Data, want)
					}
				}
				return nil
			})))
	})
	require.NoError(t, err)
	require.NoError(t, whole)
	require.Equal(t, n, got)
	w.end()
}

// Close by another coroutine of the task, and by the peer, ends a Read.
func TestClose(t *testing.T) {
	w := start(t, listener.Limits{}, echo)
	err, whole := w.visit(listener.Limits{}, func(c *coroutine.Conn) error {
		return c.Co().Do(act.All(
			coro.New(func(*coro.Co) error {
				_, err := c.Read()
				return err
			}),
			coro.New(func(co *coro.Co) error {
				if err := co.Sleep(time.Millisecond); err != nil {
					return err
				}
				c.Close(4000, "enough")
				if err := c.Write(websocket.Text, nil); err != net.ErrClosed {
					return fmt.Errorf("Write: %v", err)
				}
				return nil
			})))
	})
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, whole)
	require.EqualError(t, servertest.Receive(t, w.ended), `websocket: closed with code 4000: "enough"`)
	w.end()
	require.Empty(t, w.Logs.FilterMessage("a task failed").All())
}

// A body that fails is told to the peer as 1011, and to the log.
func TestABodyThatFails(t *testing.T) {
	broken := errors.New("it broke")
	w := start(t, listener.Limits{}, func(c *coroutine.Conn) error {
		if err := c.Write(websocket.Text, []byte("bye")); err != nil {
			return err
		}
		return broken
	})
	err, whole := w.visit(listener.Limits{}, func(c *coroutine.Conn) error {
		m, err := c.Read()
		if err != nil || string(m.Data) != "bye" {
			return fmt.Errorf("%q: %v", m.Data, err)
		}
		_, err = c.Read()
		return err
	})
	require.EqualError(t, err, "websocket: closed with code 1011")
	require.NoError(t, whole)
	w.end()
	require.Equal(t, 1, w.Logs.FilterMessage("a task failed").Len())

	w = start(t, listener.Limits{}, echo)
	_, whole = w.visit(listener.Limits{}, func(*coroutine.Conn) error { return broken })
	require.ErrorIs(t, whole, broken)
	require.EqualError(t, servertest.Receive(t, w.ended), "websocket: closed with code 1011")
	w.end()
}

// A body that waits for something else when the connection has ended is stopped.
func TestABodyThatDoesNotNotice(t *testing.T) {
	w := start(t, listener.Limits{}, func(c *coroutine.Conn) error { return c.Co().Sleep(time.Hour) })
	err, whole := w.visit(listener.Limits{}, func(*coroutine.Conn) error { return nil })
	require.NoError(t, err)
	require.NoError(t, whole)
	require.ErrorIs(t, servertest.Receive(t, w.ended), coro.ErrStopped)
	w.end()
	require.Empty(t, w.Logs.FilterMessage("a task failed").All())
}

// Scopes cut a call short, and it has done nothing.
func TestScopes(t *testing.T) {
	w := start(t, listener.Limits{}, func(c *coroutine.Conn) error {
		m, err := c.Read()
		if err != nil {
			return err
		}
		if err := c.Co().Sleep(5 * time.Millisecond); err != nil {
			return err
		}
		return c.Write(m.Type, m.Data)
	})
	err, _ := w.visit(listener.Limits{}, func(c *coroutine.Conn) error {
		if err := c.Write(websocket.Text, []byte("hello")); err != nil {
			return err
		}
		for {
			var m websocket.Message
			err := c.Co().Within(time.Millisecond, func() (err error) { m, err = c.Read(); return err })
			var late net.Error
			switch {
			case err == nil && string(m.Data) == "hello":
				return nil
			case !errors.As(err, &late) || !late.Timeout():
				return fmt.Errorf("%q: %v", m.Data, err)
			}
		}
	})
	require.NoError(t, err)
	w.end()
}

// After an order the call in UntilOrder is cut short, and what the body sends still goes out. A Read that is not in
// UntilOrder ends with the connection.
func TestOrders(t *testing.T) {
	for name, row := range map[string]struct {
		f     body
		heard []string
		is    error
	}{
		"until an order": {func(c *coroutine.Conn) error {
			err := c.Co().UntilOrder(func() error { return echo(c) })
			return errors.Join(err, c.Write(websocket.Text, []byte("good night")))
		}, []string{"hello", "good night"}, coro.ErrOrdered},
		"echo": {echo, []string{"hello"}, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, listener.Limits{}, row.f)
			var heard []string
			client := servertest.Start(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
				dial := &websocket.Client{URL: "ws://" + w.socket.Addr().String(), Handler: func(c *websocket.Conn) act.Action {
					return coroutine.New(c, func(c *coroutine.Conn) error {
						err := c.Write(websocket.Text, []byte("hello"))
						for err == nil {
							var m websocket.Message
							if m, err = c.Read(); err == nil {
								heard = append(heard, string(m.Data))
								w.Group.Shutdown(servertest.Drain)
							}
						}
						return err
					})
				}}
				s.Spawn(dial.Dial())
				return nil
			})
			require.NoError(t, w.End())
			require.NoError(t, client.End())
			require.Equal(t, row.heard, heard)
			require.ErrorIs(t, servertest.Receive(t, w.ended), row.is)
		})
	}
}

func TestAConnIsForTheCoroutinesOfItsTask(t *testing.T) {
	w := start(t, listener.Limits{}, echo)
	uses := map[string]func(c *coroutine.Conn){
		"Read":  func(c *coroutine.Conn) { _, _ = c.Read() },
		"Write": func(c *coroutine.Conn) { _ = c.Write(websocket.Text, nil) },
		"Close": func(c *coroutine.Conn) { c.Close(1000, "") },
	}
	for name, use := range uses {
		err, _ := w.visit(listener.Limits{}, func(c *coroutine.Conn) error {
			_, err := coro.Offload(c.Co(), func() (any, error) { // a panic of which is an error
				use(c)
				return nil, nil
			})
			return err
		})
		require.ErrorContains(t, err, "outside of the coroutines of its task", name)
	}
	require.Panics(t, func() { coroutine.New(nil, nil) })
	w.end()
}
