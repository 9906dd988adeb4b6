package secure_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// handles starts a server of TLS with a handler, and returns it with the config of its clients.
func handles(t testing.TB, v *service.TCP) (*serving, *tls.Config) {
	server, client := identities(t)
	v.Filters = []listener.Filter{secure.Server(server, nil)}
	return serve(t, v), client
}

// ends reports to a channel how a coroutine ends.
func ends(ended chan<- error, f func(*coro.Conn) error) func(*listener.Conn) act.Action {
	return coro.Serve(func(c *coro.Conn) error {
		err := f(c)
		ended <- err
		return err
	})
}

// What a client sends before its end arrives whole, and so does the answer, however large.
func TestTenMiBArriveWholeBeforeAHalfClose(t *testing.T) {
	s, client := handles(t, &service.TCP{Handler: echo})
	for _, v := range versions {
		c := s.dial(version(client, v))
		sent := noise(10 << 20)
		wrote := make(chan error, 1)
		go func() {
			_, err := c.Write(sent)
			wrote <- errors.Join(err, c.CloseWrite())
		}()
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.NoError(t, servertest.Receive(t, wrote))
		require.True(t, bytes.Equal(sent, got), "%d bytes", len(got))
		_ = c.Close()
	}
	s.drain()
}

// After a server has closed its side it still reads what the client sends.
func TestAServerReadsAfterItsHalfClose(t *testing.T) {
	ended, got := make(chan error, 1), 0
	s, client := handles(t, &service.TCP{Handler: ends(ended, func(c *coro.Conn) error {
		if _, err := c.Write(noise(10 << 20)); err != nil {
			return err
		}
		if err := c.CloseWrite(); err != nil {
			return err
		}
		if _, err := c.Write([]byte("late")); err == nil {
			return errors.New("a Write after CloseWrite")
		}
		all, err := io.ReadAll(c)
		got = len(all)
		return err
	})})
	c := s.dial(client)
	all, err := io.ReadAll(c)
	require.NoError(t, err)
	require.True(t, bytes.Equal(noise(10<<20), all))
	_, err = c.Write(noise(1 << 20))
	require.NoError(t, err)
	_ = c.Close()
	require.NoError(t, servertest.Receive(t, ended))
	require.Equal(t, 1<<20, got)
	s.drain()
}

// For a client that does not read no more is queued than Limits say and TLS adds. It gets everything later.
func TestWhatIsQueuedForASlowReaderIsBounded(t *testing.T) {
	const total, high = 4 << 20, 32 << 10
	most := 0
	held := make(chan struct{}, 1)
	s, client := handles(t, &service.TCP{Limits: listener.Limits{High: high, SendBuffer: 4 << 10},
		Handler: func(c *listener.Conn) act.Action {
			left := noise(total)
			return act.Func(func(t *act.Task) act.Directive {
				n, err := c.Write(left[:min(len(left), 1000)])
				left = left[n:]
				if most = max(most, c.Queued()); err != nil {
					select {
					case held <- struct{}{}:
					default:
					}
					return listener.Next(t, err)
				}
				if len(left) == 0 {
					return act.Done
				}
				return act.Yield
			})
		}})
	c := s.dial(client)
	servertest.Receive(t, held)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.True(t, bytes.Equal(noise(total), got))
	_ = c.Close()
	s.drain()
	require.Less(t, most, high+high/16+8<<10)
}

// A client that closes or resets in the middle of its bytes disturbs nobody.
func TestConnectionsThatBreakAtAnyMoment(t *testing.T) {
	s, client := handles(t, &service.TCP{Handler: echo})
	random := rand.New(rand.NewPCG(4, 17))
	some := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i := range tier.Choose(60, 60, 5000) {
		under := servertest.Dial(t, s.Addr())
		c := tls.Client(quits(under, 2000+random.IntN(300_000), random.IntN(2) == 0), version(client, versions[i%2]))
		some <- struct{}{}
		all.Go(func() {
			defer func() { <-some }()
			var written sync.WaitGroup
			written.Go(func() { _, _ = c.Write(noise(200_000)) })
			got, _ := io.ReadAll(c)
			_ = under.Close()
			written.Wait()
			if !bytes.HasPrefix(noise(200_000), got) {
				t.Error("wrong bytes came back")
			}
		})
	}
	all.Wait()
	c := s.dial(client)
	servertest.Echo(t, c, "x")
	halves(t, c)
	s.drain()
	s.withoutReports()
}

// Without descriptors clients wait, and are served when there are some again.
func TestWithoutDescriptorsClientsWait(t *testing.T) {
	server, client := identities(t)
	tcp := overTLS(server)
	tcp.Address = "127.0.0.1:0"
	var refused atomic.Int64
	os := &servertest.OS{Fail: func(call string, _ int) error {
		if call == "accept" && refused.Add(1) <= 3 {
			return syscall.EMFILE
		}
		return nil
	}}
	s := &serving{servertest.Start(t, act.Config{Schedulers: 1}, inject(os), tcp.Setup), tcp}
	c := s.dial(client)
	require.Greater(t, refused.Load(), int64(3))
	halves(t, c)
	s.drain()
}

// An order ends idle connections of HTTP with close_notify; a handshake that is under way is finished and served.
func TestADrain(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		_, _ = w.WriteString("hello")
		return nil
	}}
	handler := func(c *listener.Conn) act.Action {
		if state, _ := secure.State(c); state.NegotiatedProtocol == "echo" {
			return echo(c)
		}
		return web.Serve(c)
	}
	server, client := identities(t)
	server.NextProtos = []string{"echo", "http/1.1"}
	s := serve(t, &service.TCP{Handler: handler, Filters: []listener.Filter{secure.Server(server, nil)}})
	idle := s.dial(client)
	servertest.Send(t, idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, err := io.ReadAtLeast(idle, make([]byte, 1000), 50)
	require.NoError(t, err)

	echoes := client.Clone()
	echoes.NextProtos = []string{"echo"}
	begun, goOn := make(chan struct{}), make(chan struct{})
	echoes.VerifyConnection = func(tls.ConnectionState) error {
		close(begun)
		<-goOn
		return nil
	}
	late := tls.Client(servertest.Dial(t, s.Addr()), echoes)
	shaken := make(chan error, 1)
	go func() { shaken <- late.Handshake() }()
	servertest.Receive(t, begun)

	s.Group.Shutdown(servertest.Drain)
	servertest.ExpectEOF(t, idle)
	_ = idle.Close()
	close(goOn)
	require.NoError(t, servertest.Receive(t, shaken))
	servertest.Echo(t, late, "after the order")
	halves(t, late)
	require.NoError(t, s.End())
	s.withoutReports()
}

// A close with unread input still delivers the last bytes, and close_notify.
func TestACloseWithUnreadInput(t *testing.T) {
	s, client := handles(t, &service.TCP{Limits: listener.Limits{Read: 4 << 10}, Handler: func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			if _, err := c.Peek(1); err != nil {
				return listener.Next(t, err)
			}
			if _, err := c.WriteString("goodbye"); err != nil {
				return t.Fail(err)
			}
			return act.Done
		})
	}})
	for range 10 {
		c := s.dial(client)
		_, err := c.Write(noise(300_000))
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "goodbye", string(got))
		_ = c.Close()
	}
	s.drain()
}

// Deadlines end waits, and no byte is lost by one.
func TestDeadlines(t *testing.T) {
	ended := make(chan error, 1)
	s, client := handles(t, &service.TCP{Limits: listener.Limits{SendBuffer: 4 << 10}, Handler: ends(ended, func(c *coro.Conn) error {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		for range 2 {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("read: %w", err)
			}
		}
		_ = c.SetReadDeadline(time.Time{})
		if _, err := c.Write([]byte("go on")); err != nil {
			return err
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
			return fmt.Errorf("%q, %w", got, err)
		}
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := c.Write(make([]byte, 32<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	})})
	c := s.dial(client)
	servertest.Expect(t, c, "go on")
	servertest.Send(t, c, "hello")
	require.NoError(t, servertest.Receive(t, ended))
	_ = c.NetConn().Close()
	s.drain()
}

// A task that waits for something else than input learns that its peer has closed the transport, or reset it.
func TestEnded(t *testing.T) {
	for _, reset := range []bool{false, true} {
		begun, ended := make(chan struct{}, 1), make(chan string, 1)
		s, client := handles(t, &service.TCP{Handler: func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				half, err := c.Ended(t)
				if !half && err == nil {
					select {
					case begun <- struct{}{}:
					default:
					}
					return act.Wait
				}
				ended <- fmt.Sprintf("%v %v", half, errors.Is(err, syscall.ECONNRESET))
				return act.Done
			})
		}})
		c := s.dial(client)
		servertest.Receive(t, begun)
		if reset {
			servertest.Reset(t, c.NetConn())
			require.Equal(t, "true true", servertest.Receive(t, ended))
		} else {
			_ = c.Close()
			require.Equal(t, "true false", servertest.Receive(t, ended))
		}
		s.drain()
	}
}

// At MaxConns a connection that is idle makes room, of a handler of one's own and of HTTP. It ends in order.
func TestAnIdleConnectionMakesRoom(t *testing.T) {
	web := &httpd.Server{Handler: func(*httpd.Response, *httpd.Request) act.Action { return nil }}
	for name, handler := range map[string]func(*listener.Conn) act.Action{"echo": echo, "HTTP": web.Serve} {
		t.Run(name, func(t *testing.T) {
			s, client := handles(t, &service.TCP{MaxConns: 1, ReclaimAfter: time.Millisecond, Handler: handler})
			for _, v := range versions {
				first := s.dial(version(client, v))
				if name == "echo" {
					servertest.Echo(t, first, "x")
				}
				second := s.dial(version(client, v))
				servertest.ExpectEOF(t, first)
				_ = first.Close()
				_ = second.Close()
			}
			s.drain()
			s.withoutReports()
		})
	}
}

// A connection with a part of a record is not idle, so it makes no room.
func TestAPartOfARecordIsNotIdle(t *testing.T) {
	idle := make(chan bool, 1)
	s, client := handles(t, &service.TCP{Handler: func(c *listener.Conn) act.Action {
		served := false
		return act.Func(func(t *act.Task) act.Directive {
			in, err := c.Peek(1)
			c.Discard(len(in))
			if len(in) > 0 {
				_, _ = c.Write(in[:1])
				served = true
			} else if _, waits := err.(act.Blocked); waits && served {
				_, is := c.IdleSince()
				select {
				case idle <- is:
				default:
				}
			}
			return listener.Next(t, err)
		})
	}})
	c, h := s.hold(client)
	require.True(t, servertest.Receive(t, idle))
	servertest.Send(t, c, "hello")
	whole := bytes.Clone(h.held.Bytes())
	h.held.Truncate(7)
	h.send(t)
	require.False(t, servertest.Receive(t, idle))
	_, err := h.Conn.Write(whole[7:])
	require.NoError(t, err)
	servertest.Expect(t, c, "h")
	require.True(t, servertest.Receive(t, idle))
	_ = h.Close()
	s.drain()
}

// Messages of Push are whole or dropped, for a client that reads late.
func TestPush(t *testing.T) {
	const messages, size = 2000, 1000
	dropped := make(chan int, 1)
	s, client := handles(t, &service.TCP{Limits: listener.Limits{High: 32 << 10, Overflow: listener.Drop, SendBuffer: 4 << 10},
		Handler: func(c *listener.Conn) act.Action {
			n := 0
			return act.Func(func(t *act.Task) act.Directive {
				for range 10 {
					if n++; n > messages {
						dropped <- c.Dropped()
						return act.Done
					}
					if err := c.Push(bytes.Repeat([]byte{byte(n)}, size)); err != nil {
						return t.Fail(err)
					}
				}
				return act.Yield
			})
		}})
	c := s.dial(client)
	lost := servertest.Receive(t, dropped)
	require.NotZero(t, lost)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Len(t, got, (messages-lost)*size)
	for p := range bytesOf(got, size) {
		require.Equal(t, bytes.Repeat(p[:1], size), p)
	}
	_ = c.Close()
	s.drain()
	s.withoutReports()
}

// bytesOf yields p in pieces of n.
func bytesOf(p []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(p) > 0 && yield(p[:n]); p = p[n:] {
		}
	}
}

// Sent is nil when the system has everything, and not before.
func TestSent(t *testing.T) {
	waits, sent := make(chan struct{}, 1), make(chan struct{}, 1)
	s, client := handles(t, &service.TCP{Limits: listener.Limits{High: 8 << 20, SendBuffer: 4 << 10},
		Handler: func(c *listener.Conn) act.Action {
			_, _ = c.Write(noise(1 << 20))
			_ = c.CloseWrite()
			return act.Func(func(t *act.Task) act.Directive {
				err := c.Sent()
				if _, blocked := err.(act.Blocked); blocked {
					select {
					case waits <- struct{}{}:
					default:
					}
					return listener.Next(t, err)
				}
				sent <- struct{}{}
				return c.Next(t, io.EOF)
			})
		}})
	c := s.dial(client)
	servertest.Receive(t, waits)
	require.Empty(t, sent)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.True(t, bytes.Equal(noise(1<<20), got))
	servertest.Receive(t, sent)
	_ = c.Close()
	s.drain()
}

// Peek for more than a record waits for all of it, up to Limits.Read.
func TestPeekBeyondARecord(t *testing.T) {
	got := make(chan string, 2)
	s, client := handles(t, &service.TCP{Limits: listener.Limits{Read: 50_000}, Handler: func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := c.Peek(50_000)
			if err != nil {
				return listener.Next(t, err)
			}
			got <- string(in)
			_, err = c.Peek(50_001)
			got <- err.Error()
			return act.Done
		})
	}})
	sent := noise(60_000)
	c := s.dial(client)
	for p := range bytesOf(sent, 100) {
		_, err := c.Write(p)
		require.NoError(t, err)
	}
	require.Equal(t, string(sent[:50_000]), servertest.Receive(t, got))
	require.Equal(t, listener.ErrTooLong.Error(), servertest.Receive(t, got))
	halves(t, c)
	s.drain()
}

// A library that blocks talks TLS through a Bridge.
func TestABridge(t *testing.T) {
	s, client := handles(t, &service.TCP{Handler: func(c *listener.Conn) act.Action {
		return &listener.Bridge{Conn: c, F: func(c net.Conn) error {
			_, err := io.Copy(c, c)
			return err
		}}
	}})
	c := s.dial(client)
	go func() {
		_, _ = c.Write(noise(2 << 20))
		_ = c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.True(t, bytes.Equal(noise(2<<20), got))
	_ = c.Close()
	s.drain()
	s.withoutReports()
}

// A file is read and encrypted, as there is room.
func TestSendFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, noise(3<<20), 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	s, client := handles(t, &service.TCP{Handler: func(c *listener.Conn) act.Action {
		at := int64(0)
		return act.Func(func(t *act.Task) act.Directive {
			n, err := c.SendFile(f, at, 3<<20-at)
			if at += n; at == 3<<20 {
				return act.Done
			}
			return listener.Next(t, err)
		})
	}})
	c := s.dial(client)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.True(t, bytes.Equal(noise(3<<20), got))
	_ = c.Close()
	s.drain()
}
