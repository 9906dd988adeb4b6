package listener_test

import (
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// file returns one of n bytes, and what is in it.
func file(t testing.TB, n int) (*os.File, []byte) {
	t.Helper()
	content := random(n)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, content
}

// refuses is a Fail of a Stepped for a system that has no call to send a file with.
func refuses(call string, _ int) error {
	if call == "sendfile" {
		return syscall.ENOSYS
	}
	return nil
}

// plain is a Stream that is nothing more, as a filter would be.
type plain struct{ monitor.Stream }

// ways are those in which a file can go out.
var ways = map[string]func(l *servertest.Stepped, network string, limits listener.Limits) (*listener.Conn, net.Conn){
	"by the system": func(l *servertest.Stepped, network string, limits listener.Limits) (*listener.Conn, net.Conn) {
		return l.Conn(network, limits)
	},
	"not by this system": func(l *servertest.Stepped, network string, limits listener.Limits) (*listener.Conn, net.Conn) {
		l.OS.Fail = refuses
		return l.Conn(network, limits)
	},
	"not over this stream": func(l *servertest.Stepped, network string, limits listener.Limits) (*listener.Conn, net.Conn) {
		stream, peer := l.Stream(network)
		return listener.NewConn(l.S, plain{stream}, limits), peer
	},
}

// eachWay runs f over TCP and over a Unix socket.
func eachWay(t *testing.T, f func(t *testing.T, l *servertest.Stepped, way string, conn func(listener.Limits) (*listener.Conn, net.Conn))) {
	for way, conn := range ways {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(way+", "+network, func(t *testing.T) {
				l := servertest.New(t, act.Config{})
				f(t, l, way, func(limits listener.Limits) (*listener.Conn, net.Conn) { return conn(l, network, limits) })
			})
		}
	}
}

// The error is the file's, says so, and leaves the connection as it was.
func TestSendFileOfAFolderOrPipeIsThatFilesError(t *testing.T) {
	eachWay(t, func(t *testing.T, l *servertest.Stepped, _ string, conn func(listener.Limits) (*listener.Conn, net.Conn)) {
		c, peer := conn(listener.Limits{})
		defer c.Abort()
		shut, _ := file(t, 10)
		require.NoError(t, shut.Close())
		folder, err := os.Open(t.TempDir())
		require.NoError(t, err)
		defer func() { _ = folder.Close() }()
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer func() { _, _ = r.Close(), w.Close() }()
		for _, f := range []*os.File{shut, folder, r} {
			l.Turn(func(*act.Task) {
				_, err := c.SendFile(f, 0, 10)
				var of *fs.PathError
				require.ErrorAs(t, err, &of)
				require.NotImplements(t, (*act.Blocked)(nil), err)
			})
		}
		l.Turn(func(*act.Task) {
			_, err := c.WriteString("and on")
			require.NoError(t, err)
		})
		servertest.Expect(t, peer, "and on")
	})
}

// An error of the disk is not one of the connection, though the system's call returns both.
func TestSendFileTellsDiskErrorsFromConnectionErrors(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	f, _ := file(t, 10)
	l.OS.Fail = servertest.Failing("sendfile", syscall.EIO)
	blind, err := os.OpenFile(f.Name(), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = blind.Close() }()
	_, err = c.SendFile(blind, 0, 10)
	var of *fs.PathError
	require.ErrorAs(t, err, &of)
	l.Turn(func(*act.Task) { _, _ = c.WriteString("still there") })
	servertest.Expect(t, peer, "still there")
	_, err = c.SendFile(f, 0, 10)
	require.Equal(t, syscall.EIO, err, "the file can be read: it was the connection")
	_, err = c.WriteString("x")
	require.Equal(t, syscall.EIO, err, "which is over then")
}

func TestSendFileAfterCloseWriteAndAbort(t *testing.T) {
	eachWay(t, func(t *testing.T, l *servertest.Stepped, _ string, conn func(listener.Limits) (*listener.Conn, net.Conn)) {
		f, _ := file(t, 10)
		c, _ := conn(listener.Limits{})
		require.NoError(t, c.CloseWrite())
		_, err := c.SendFile(f, 0, 10)
		require.EqualError(t, err, "monitor: the write side was closed")
		c.Abort()
		_, err = c.SendFile(f, 0, 10)
		require.Equal(t, net.ErrClosed, err)
		require.Panics(t, func() { _, _ = c.SendFile(f, -1, 10) })
		require.Panics(t, func() { _, _ = c.SendFile(f, 0, -10) })
	})
}

// Special files of the system report that they are empty, and cannot be sent from memory to memory.
func TestSendFileOfAFileInProc(t *testing.T) {
	f, err := os.Open("/proc/version")
	if err != nil {
		t.Skip("a system without /proc")
	}
	defer func() { _ = f.Close() }()
	content, err := os.ReadFile("/proc/version")
	require.NoError(t, err)
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	l.Turn(func(*act.Task) {
		n, err := c.SendFile(f, 1, int64(len(content)))
		require.Equal(t, io.ErrUnexpectedEOF, err)
		require.EqualValues(t, len(content)-1, n)
	})
	servertest.Expect(t, peer, string(content[1:]))
}
