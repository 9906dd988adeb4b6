package coro_test

import (
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
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

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
