package listener_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// bridged is a server that calls f with a blocking connection to each client.
type bridged struct {
	*servertest.Running
	socket *service.Listener
	ended  chan error // what f returned
	dialed []net.Conn
}

func bridge(t *testing.T, limits listener.Limits, f func(net.Conn) error) *bridged {
	t.Helper()
	b := &bridged{ended: make(chan error, 100)}
	b.socket = &service.Listener{Address: "127.0.0.1:0", Limits: limits, Handler: func(c *listener.Conn) act.Action {
		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
			err := f(c)
			b.ended <- err
			return err
		}}
	}}
	b.Running = servertest.Start(t, act.Config{Schedulers: 2}, b.socket.Setup)
	return b
}

func (b *bridged) dial() *net.TCPConn {
	c := servertest.Dial(b.T, b.socket.Addr()).(*net.TCPConn)
	b.dialed = append(b.dialed, c)
	return c
}

// drain closes the clients' connections, orders the server to end, and returns the errors of tasks that have failed.
func (b *bridged) drain() (failed []string) {
	b.T.Helper()
	for _, c := range b.dialed {
		_ = c.Close()
	}
	b.Group.Shutdown(servertest.Drain)
	require.NoError(b.T, b.End())
	for _, e := range b.Logs.FilterMessage("a task failed").All() {
		failed = append(failed, e.ContextMap()["error"].(string))
	}
	return failed
}

func random(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p)
	return p
}

// With a peer that sends and does not read, and a function that writes and does not read, both are held up.
func TestABridgeHoldsABoundedNumberOfBytesEachWay(t *testing.T) {
	const lane = 3 * 16 << 10
	l := servertest.New(t, act.Config{})
	limits, err := listener.Limits{}.Resolved()
	require.NoError(t, err)
	c, peer := l.Conn("unix", listener.Limits{})
	data := random(1 << 20)
	var wrote atomic.Int64
	read := make(chan struct{})
	o := spawn(l.S, &listener.Bridge{Conn: c, F: func(c net.Conn) error {
		done := make(chan error)
		go func() {
			var err error
			for part := range slices.Chunk(data, 1000) {
				n, failed := c.Write(part)
				wrote.Add(int64(n))
				err = errors.Join(err, failed)
			}
			done <- err
		}()
		<-read
		_, err := io.Copy(io.Discard, c)
		return errors.Join(err, <-done)
	}})
	go func() {
		_, _ = peer.Write(data)
		_ = peer.(*net.UnixConn).CloseWrite()
	}()
	for range 20 {
		l.For(0)
		require.LessOrEqual(t, l.OS.Bytes("receive"), lane+2*limits.Read)
		require.LessOrEqual(t, wrote.Load()-int64(l.OS.Bytes("send")), int64(lane+limits.High+4<<10))
	}
	close(read)
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	require.Equal(t, act.Done, o.over(l))
	require.EqualValues(t, len(data), wrote.Load())
}

// Other goroutines of a library wait in Read and Write when one of them closes.
func TestCloseOfABridgeEndsTheCallsOfAllGoroutines(t *testing.T) {
	b := bridge(t, listener.Limits{Linger: time.Millisecond}, func(c net.Conn) error {
		ended := make(chan error, 3)
		for range 2 {
			go func() {
				_, err := c.Read(make([]byte, 1))
				ended <- err
			}()
		}
		go func() {
			var err error
			for err == nil {
				_, err = c.Write(make([]byte, 64<<10))
			}
			ended <- err
		}()
		require.NoError(t, c.Close())
		for range cap(ended) {
			require.ErrorIs(t, <-ended, net.ErrClosed)
		}
		_, err := c.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = c.Write(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, c.Close(), net.ErrClosed)
		require.ErrorIs(t, c.SetDeadline(time.Now()), net.ErrClosed)
		require.NotNil(t, c.RemoteAddr())
		require.NotNil(t, c.LocalAddr())
		return net.ErrClosed // as of what was closed here: no failure
	})
	b.dial()
	servertest.Receive(t, b.ended)
	require.Empty(t, b.drain())
}

func TestAnOrderEndsReadOfABridgeAndLetsWriteGoOn(t *testing.T) {
	data := random(1 << 20)
	reading := make(chan struct{})
	b := bridge(t, listener.Limits{}, func(c net.Conn) error {
		_, err := io.ReadFull(c, make([]byte, 5))
		require.NoError(t, err)
		close(reading)
		_, err = c.Read(make([]byte, 1))
		_, failed := c.Write(data)
		require.NoError(t, failed)
		return err
	})
	c := b.dial()
	servertest.Send(t, c, "hello")
	<-reading
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(c)
		got <- all
	}()
	b.Group.Shutdown(servertest.Drain)
	require.True(t, bytes.Equal(data, servertest.Receive(t, got)))
	require.ErrorIs(t, servertest.Receive(t, b.ended), net.ErrClosed)
	require.Empty(t, b.drain())
}

func TestWhatTheFunctionOfABridgeReturns(t *testing.T) {
	no := errors.New("no")
	for _, row := range []struct {
		name string
		f    func(net.Conn) error
		err  error
	}{
		{"nil", func(net.Conn) error { return nil }, nil},
		{"io.EOF", func(net.Conn) error { return io.EOF }, nil},
		{"an error", func(net.Conn) error { return no }, no},
		{"net.ErrClosed after Close", func(c net.Conn) error { _ = c.Close(); return net.ErrClosed }, nil},
		{"net.ErrClosed, and nothing was closed", func(net.Conn) error { return net.ErrClosed }, net.ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("tcp", listener.Limits{})
			o := spawn(l.S, &listener.Bridge{Conn: c, F: row.f})
			o.over(l)
			require.Equal(t, row.err, o.err)
			servertest.ExpectEOF(t, peer)
		})
	}
}

// A coroutine may have set one before it gave its connection away.
func TestABridgeRemovesTheDeadlinesOfItsConn(t *testing.T) {
	l, clock := virtual(t)
	c, peer := l.Conn("tcp", listener.Limits{})
	l.Turn(func(*act.Task) { require.NoError(t, c.SetDeadline(clock.Wall().Add(time.Second))) })
	o := spawn(l.S, &listener.Bridge{Conn: c, F: func(c net.Conn) error {
		_, err := io.Copy(c, c)
		return err
	}}).begun(l)
	pass(l, clock, time.Minute)
	servertest.Send(t, peer, "hello")
	require.NoError(t, peer.(*net.TCPConn).CloseWrite())
	require.Equal(t, act.Done, o.over(l))
	servertest.Expect(t, peer, "hello")
}

func TestAPanicInTheFunctionOfABridgeFailsItAndAbortsTheConnection(t *testing.T) {
	b := bridge(t, listener.Limits{}, func(c net.Conn) error {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "half of an ans")
		panic("boom")
	})
	c := b.dial()
	servertest.Send(t, c, "?")
	_, err := io.Copy(io.Discard, c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	failed := b.drain()
	require.Len(t, failed, 1)
	require.Contains(t, failed[0], "boom")
}

func TestABridgeWithoutAFunctionIsDoneAfterClose(t *testing.T) {
	for name, then := range map[string]func(peer net.Conn){
		"its peer goes on":         func(net.Conn) {},
		"its peer has ended":       func(peer net.Conn) { _ = peer.(*net.TCPConn).CloseWrite() },
		"the connection is broken": func(peer net.Conn) { servertest.Reset(t, peer) },
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
			x := &listener.Bridge{Conn: c}
			conn := x.NetConn()
			require.Equal(t, conn, x.NetConn())
			o := spawn(l.S, x).begun(l)
			then(peer)
			go func() {
				var err error
				for err == nil && name != "its peer goes on" { // until it learns of the end
					_, err = conn.Read(make([]byte, 1))
				}
				_, _ = conn.Write([]byte("bye"))
			}()
			if name == "the connection is broken" {
				l.Until("the connection is given up", func() bool { return c.LocalAddr() == nil })
			} else {
				l.Until("it is sent", func() bool { return l.OS.Bytes("send") == 3 })
			}
			l.For(0)
			require.Equal(t, act.Wait, o.directive, "before Close")
			require.NoError(t, conn.Close())
			require.Equal(t, act.Done, o.over(l))
		})
	}
}

func TestWhatEndsTheCallsOfABridgeWithoutAFunction(t *testing.T) {
	for name, end := range map[string]func(l *servertest.Stepped, c *listener.Conn, x *listener.Bridge){
		"another task has closed the Conn": func(l *servertest.Stepped, c *listener.Conn, x *listener.Bridge) {
			o := spawn(l.S, x).begun(l)
			l.Turn(func(*act.Task) { c.Abort() })
			require.Equal(l.T, act.Done, o.over(l))
		},
		"it is dropped before its first turn": func(l *servertest.Stepped, _ *listener.Conn, x *listener.Bridge) {
			require.NoError(l.T, x.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, _ := l.Conn("tcp", listener.Limits{})
			x := &listener.Bridge{Conn: c}
			conn := x.NetConn()
			end(l, c, x)
			_, err := conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = conn.Write(nil)
			require.ErrorIs(t, err, net.ErrClosed)
			require.ErrorIs(t, conn.Close(), net.ErrClosed)
		})
	}
}
