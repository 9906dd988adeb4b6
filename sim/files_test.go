package sim_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// fileServer is a server with one file. A request is a line with an offset and a number of bytes. The answer is the line,
// the bytes, and a dot.
type fileServer struct {
	f       *os.File
	content []byte
}

func newFileServer(t testing.TB) *fileServer {
	content := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return &fileServer{f, content}
}

func (l *fileServer) serve(c *listener.Conn) act.Action {
	lines := listener.Line{Conn: c, Max: 100}
	offset, left, asked := int64(0), int64(0), false
	return act.Func(func(t *act.Task) act.Directive {
		if !asked {
			line, err := lines.Read()
			if err != nil {
				return listener.Next(t, err)
			}
			_, _ = fmt.Sscan(string(line), &offset, &left)
			if _, err := c.WriteString(string(line) + "\n"); err != nil { // never a Blocked: all was sent but a dot
				return t.Fail(err)
			}
			asked = true
		}
		n, err := c.SendFile(l.f, offset, left)
		offset, left = offset+n, left-n
		if err != nil || left > 0 {
			return listener.Next(t, err)
		}
		if err := c.Sent(); err != nil {
			return listener.Next(t, err)
		}
		if n, err := c.WriteString("."); n == 0 {
			return listener.Next(t, err)
		}
		asked = false
		return act.Yield
	})
}

// visit requests some parts, and reads them at its own pace.
func (l *fileServer) visit(c *sim.Client) error {
	in := bufio.NewReaderSize(c, 16+c.Rand().IntN(20_000))
	for range 1 + c.Rand().IntN(4) {
		n := c.Rand().IntN(1 << c.Rand().IntN(19))
		n = min(n, len(l.content))
		offset := c.Rand().IntN(len(l.content) - n + 1)
		request := fmt.Sprintln(offset, n)
		if _, err := io.WriteString(c, request); err != nil {
			return err
		}
		got := make([]byte, len(request)+n+1)
		for read := 0; read < len(got); {
			k, err := in.Read(got[read:min(len(got), read+1+n/10)])
			if read += k; err != nil {
				return err
			}
			if c.Rand().IntN(20) == 0 {
				c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
			}
		}
		want := append(append([]byte(request), l.content[offset:offset+n]...), '.')
		if !bytes.Equal(want, got) {
			return fmt.Errorf("%d bytes from %d differ from the file", n, offset)
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if n, err := in.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("not the end: %d, %w", n, err)
	}
	return nil
}

// TestWorldFiles sends files with the sendfile of the system, over sockets of both kinds that are often full. Streams that
// cannot send files read and write them.
func TestWorldFiles(t *testing.T) {
	l := newFileServer(t)
	sim.Test(t, func(w *sim.World) {
		cfg := act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 1, 8)}
		tcp := &service.Listener{Address: "10.0.0.1:7011", Handler: l.serve, Limits: patient(w)}
		unix := &service.Listener{Address: "unix:/run/files", Handler: l.serve, Limits: patient(w)}
		_, err := w.Server("files", cfg, append(anyEngine(w), tcp.Setup, unix.Setup)...)
		require.NoError(t, err)
		for range 8 {
			w.Client(pick(w, "10.0.0.1:7011", "unix:/run/files"), l.visit)
		}
	})
}
