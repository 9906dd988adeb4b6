package coroutine_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/coroutine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// hears reads a message, and requires it to be this one.
func hears(c *coroutine.Conn, want string) error {
	m, err := c.Read()
	if err == nil && string(m.Data) != want {
		err = fmt.Errorf("%q instead of %q", m.Data, want)
	}
	return err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A server and a client, both of them coroutines, with what their bodies return, and how many tasks fail.
func TestConversations(t *testing.T) {
	broken := errors.New("it broke")
	var drain func() // shuts the server down
	for name, row := range map[string]struct {
		server, client func(c *coroutine.Conn) error
		there, here    string
		failures       int
	}{
		"messages are the reader's": {echo, func(c *coroutine.Conn) error {
			var kept [][]byte
			for i := range 200 {
				if err := c.Write(websocket.Binary, bytes.Repeat([]byte{byte(i)}, i*i)); err != nil {
					return err
				}
				m, err := c.Read()
				if err != nil {
					return err
				}
				kept = append(kept, m.Data)
			}
			for i, p := range kept {
				if !bytes.Equal(p, bytes.Repeat([]byte{byte(i)}, i*i)) {
					return fmt.Errorf("message %d: %d bytes", i, len(p))
				}
			}
			return nil
		}, "websocket: closed with code 1000", "", 0},
		"one reads, and another writes and closes": {echo, func(c *coroutine.Conn) error {
			return c.Co().Do(act.All(
				coro.New(func(*coro.Co) error {
					for {
						if err := hears(c, "hello"); err != nil {
							return err
						}
					}
				}),
				coro.New(func(co *coro.Co) error {
					for range 1000 {
						if err := c.Write(websocket.Text, []byte("hello")); err != nil {
							return err
						}
					}
					c.Close(4000, "enough")
					if err := c.Write(websocket.Text, nil); err != net.ErrClosed {
						return fmt.Errorf("Write: %v", err)
					}
					return nil
				})))
		}, `websocket: closed with code 4000: "enough"`, net.ErrClosed.Error(), 0},
		"a server that fails": {func(c *coroutine.Conn) error {
			return errors.Join(c.Write(websocket.Text, []byte("bye")), broken)
		}, func(c *coroutine.Conn) error {
			return errors.Join(hears(c, "bye"), hears(c, ""))
		}, broken.Error(), "websocket: closed with code 1011", 1},
		"a client that fails": {echo, func(*coroutine.Conn) error { return broken },
			"websocket: closed with code 1011", broken.Error(), 1},
		"a body that waits for something else when the connection ends": {
			func(c *coroutine.Conn) error { return c.Co().Sleep(time.Hour) }, func(*coroutine.Conn) error { return nil },
			coro.ErrStopped.Error(), "", 0},
		"an order cuts the call short": {func(c *coroutine.Conn) error {
			if err := c.Co().UntilOrder(func() error { return echo(c) }); !errors.Is(err, coro.ErrOrdered) {
				return err
			}
			return c.Write(websocket.Text, []byte("good night"))
		}, func(c *coroutine.Conn) error {
			err := errors.Join(c.Write(websocket.Text, []byte("hello")), hears(c, "hello"))
			drain()
			return errors.Join(err, hears(c, "good night"))
		}, "", "", 0},
		"an order ends a Read": {echo, func(c *coroutine.Conn) error {
			err := errors.Join(c.Write(websocket.Text, []byte("hello")), hears(c, "hello"))
			drain()
			return errors.Join(err, hears(c, ""))
		}, net.ErrClosed.Error(), "websocket: closed with code 1001", 0},
		"on another goroutine": {echo, func(c *coroutine.Conn) error {
			for _, use := range []func(){
				func() { _, _ = c.Read() }, func() { _ = c.Write(websocket.Text, nil) }, func() { c.Close(1000, "") },
			} {
				_, err := coro.Offload(c.Co(), func() (any, error) { use(); return nil, nil }) // a panic of which is an error
				if err == nil || !strings.Contains(err.Error(), "outside of the coroutines of its task") {
					return fmt.Errorf("no panic: %v", err)
				}
			}
			return nil
		}, "websocket: closed with code 1000", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var there, here error
			sockets := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
				return coroutine.New(c, func(c *coroutine.Conn) (err error) {
					defer func() { there = err }()
					return row.server(c)
				})
			}}
			socket := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: sockets.Serve}).Serve}
			server := servertest.Start(t, act.Config{Schedulers: 1}, socket.Setup)
			drain = func() { server.Group.Shutdown(servertest.Drain) }
			client := servertest.Start(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
				dial := &websocket.Client{URL: "ws://" + socket.Addr().String(), Handler: func(c *websocket.Conn) act.Action {
					return coroutine.New(c, func(c *coroutine.Conn) error {
						here = row.client(c)
						return here
					})
				}}
				s.Spawn(dial.Dial())
				return nil
			})
			require.NoError(t, client.End())
			drain()
			require.NoError(t, server.End())
			require.Equal(t, row.there, text(there))
			require.Equal(t, row.here, text(here))
			failed := server.Logs.FilterMessage("a task failed").Len() + client.Logs.FilterMessage("a task failed").Len()
			require.Equal(t, row.failures, failed)
		})
	}
	require.Panics(t, func() { coroutine.New(nil, nil) })
}
