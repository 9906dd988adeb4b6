package coro_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

func echo(c *coro.Conn) error {
	_, err := io.Copy(c, c)
	return err
}

// The other end is a server of package net.
func TestIOCopyBetweenTwoConnsIsAProxy(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			behind := serve(t, network, echo)
			v := serve(t, network, func(c *coro.Conn) error {
				up, err := coro.Dial(c.Co(), behind.address(), listener.Limits{})
				if err != nil {
					return err
				}
				defer func() { _ = up.Close() }()
				return both(c.Co(), relay(up, c), relay(c, up))
			})
			all := make([]net.Conn, 20)
			for i := range all {
				all[i] = v.dial()
			}
			require.NoError(t, together(len(all), func(i int) error { return echoed(all[i], noise(i<<14)) }))
			require.NoError(t, echoed(v.dial(), noise(1<<20)))
			v.drain()
			behind.drain()
		})
	}
}

func relay(to, from *coro.Conn) func(*coro.Co) error {
	return func(*coro.Co) error {
		if _, err := io.Copy(to, from); err != nil {
			return err
		}
		return to.CloseWrite()
	}
}

func TestIOCopyToAndFromOtherThings(t *testing.T) {
	data := noise(300_000)
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
		"from a bytes.Reader": func(c *coro.Conn) error {
			if _, err := io.Copy(io.Discard, c); err != nil {
				return err
			}
			_, err := io.Copy(c, bytes.NewReader(data))
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
		"to a bufio.Writer over itself": func(c *coro.Conn) error {
			w := bufio.NewWriter(c)
			if _, err := io.Copy(w, c); err != nil {
				return err
			}
			return w.Flush()
		},
		"to a Conn that is hidden": func(c *coro.Conn) error {
			_, err := io.Copy(struct{ io.Writer }{c}, c)
			return err
		},
		"Read and Write": func(c *coro.Conn) error {
			_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, "tcp", body)
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

// Bytes that one connection lends are written to the other in the same turn, so the first may be closed then.
func TestWriteToEndsWithEitherConnection(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(t *testing.T, in, out net.Conn)
		want error
	}{
		{"the source ends", func(t *testing.T, in, _ net.Conn) { require.NoError(t, in.Close()) }, nil},
		{"the source is reset", func(t *testing.T, in, _ net.Conn) { servertest.Reset(t, in) }, errGone},
		{"the drain is reset", func(t *testing.T, in, out net.Conn) {
			servertest.Reset(t, out)
			go func() {
				for _, err := in.Write(noise(1000)); err == nil; _, err = in.Write(noise(1000)) {
					time.Sleep(time.Millisecond)
				}
			}()
		}, errGone},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := bench(t)
			to, out := l.Conn("tcp", listener.Limits{})
			p, in := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
				to := c.Co().Conn(to)
				defer func() { _ = to.Close() }()
				_, err := io.Copy(to, c)
				return err
			})
			servertest.Send(t, in, "hello")
			heard := make([]byte, 5)
			l.Until("it is passed on", func() bool {
				_ = out.SetReadDeadline(time.Now().Add(time.Millisecond))
				_, err := io.ReadFull(out, heard)
				return err == nil
			})
			row.end(t, in, out)
			err := p.end()
			switch {
			case row.want == nil:
				require.NoError(t, err)
			default:
				require.True(t, gone(err), err)
			}
			_ = in.Close()
			l.For(time.Millisecond)
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

func TestWriteToCountsBetweenConnectionsToo(t *testing.T) {
	l := bench(t)
	p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
		n, err := io.Copy(c, c)
		require.EqualValues(panicking{}, 10_000, n)
		return err
	})
	result := make(chan error, 1)
	go func() { result <- echoed(peer, noise(10_000)) }()
	require.NoError(t, p.end())
	l.Until("it has come back", func() bool { return len(result) == 1 })
	require.NoError(t, <-result)
}
