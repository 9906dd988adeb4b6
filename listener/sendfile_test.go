package listener_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// noise is more than the sockets of a connection hold on both sides.
var noise = sync.OnceValue(func() []byte {
	p := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	return p
})

// file returns one of n bytes, and what is in it.
func file(t testing.TB, n int) (*os.File, []byte) {
	t.Helper()
	content := noise()[:n]
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
		stream, peer := l.Stream(network, nil)
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

// sending is a task that sends a part of a file.
type sending struct {
	c         *listener.Conn
	f         *os.File
	offset, n int64

	calls, bounded, blocked int

	full chan struct{} // if not nil: closed by the first call that would block
}

func (a *sending) Act(t *act.Task) act.Directive {
	n, err := a.c.SendFile(a.f, a.offset, a.n)
	a.calls++
	if a.offset, a.n = a.offset+n, a.n-n; a.n == 0 && err == nil {
		return act.Done
	}
	if err == nil {
		a.bounded++
	}
	if _, ok := err.(act.Blocked); ok {
		if a.blocked++; a.blocked == 1 && a.full != nil {
			close(a.full)
		}
	}
	return listener.Next(t, err)
}

// slowly reads all that comes, with a rest after every quarter of a MiB.
func slowly(peer net.Conn) <-chan []byte {
	got := make(chan []byte, 1)
	go func() {
		var all bytes.Buffer
		for {
			n, err := io.CopyN(&all, peer, 256<<10)
			if n == 0 || err != nil {
				_ = peer.Close()
				got <- all.Bytes()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return got
}

func TestAFileIsSentWholeToASlowReader(t *testing.T) {
	eachWay(t, func(t *testing.T, l *servertest.Stepped, way string, conn func(listener.Limits) (*listener.Conn, net.Conn)) {
		f, content := file(t, 8<<20)
		c, peer := conn(listener.Limits{})
		full, got := make(chan struct{}), make(chan []byte, 1)
		go func() {
			<-full
			got <- <-slowly(peer)
		}()
		l.OS.Forget()
		a := &sending{c: c, f: f, n: int64(len(content)), full: full}
		o := spawn(l.S, a)
		require.Equal(t, act.Done, o.over(l))
		require.NoError(t, c.Close())
		require.NoError(t, l.S.Run())
		require.True(t, bytes.Equal(content, servertest.Receive(t, got)))
		at, err := f.Seek(0, io.SeekCurrent)
		require.NoError(t, err)
		require.Zero(t, at, "the file's own position")

		// A wait takes a part of what fits into a socket, at least: 16 KiB would be little.
		require.GreaterOrEqual(t, o.turns, len(content)>>19, "no turn sends all of it")
		require.LessOrEqual(t, o.turns, len(content)>>14+16)
		require.Equal(t, a.calls, o.turns)
		if way == "by the system" {
			require.LessOrEqual(t, l.OS.Count("sendfile"), 9*o.turns, "one after the other of 64 KiB, and one that is refused")
			require.Zero(t, l.OS.Count("send"))
			require.Equal(t, len(content), l.OS.Bytes("sendfile"))
		} else {
			require.Equal(t, len(content), l.OS.Bytes("send"))
		}
	})
}

func TestOneCallSendsHalfAMebibyteAtMost(t *testing.T) {
	l := servertest.New(t, act.Config{})
	f, content := file(t, 2<<20)
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	l.OS.Most = 1000 // and a system that takes little has no say in that
	got := make(chan []byte, 1)
	go func() { all, _ := io.ReadAll(peer); got <- all }()
	n, err := c.SendFile(f, 0, 2<<20)
	for offset := n; err != nil; { // the peer may be late
		require.Implements(t, (*act.Blocked)(nil), err)
		time.Sleep(time.Millisecond)
		n, err = c.SendFile(f, offset, 2<<20-offset)
		if err != nil {
			offset += n
		}
	}
	require.EqualValues(t, 512<<10, n)
	c.Abort()
	require.True(t, bytes.HasPrefix(content, <-got))
}

func TestAFileGoesBehindWhatWasWritten(t *testing.T) {
	eachWay(t, func(t *testing.T, l *servertest.Stepped, _ string, conn func(listener.Limits) (*listener.Conn, net.Conn)) {
		f, content := file(t, 10_000)
		c, peer := conn(listener.Limits{})
		defer c.Abort()
		l.Turn(func(*act.Task) {
			for _, part := range []struct{ offset, n int64 }{{0, 10}, {10, 5000}, {9999, 1}, {3, 0}} {
				_, err := c.WriteString("head ")
				require.NoError(t, err)
				n, err := c.SendFile(f, part.offset, part.n)
				require.NoError(t, err)
				require.Equal(t, part.n, n)
			}
			_, err := c.WriteString("tail")
			require.NoError(t, err)
		})
		servertest.Expect(t, peer, "head "+string(content[:10])+"head "+string(content[10:5010])+"head "+string(content[9999:])+"head tail")
	})
}

// While something is queued the file waits, and is woken once, when the last of it has gone.
func TestAFileWaitsForTheQueue(t *testing.T) {
	l := servertest.New(t, act.Config{})
	f, content := file(t, 100)
	c, peer := l.Conn("unix", listener.Limits{Low: 30_000})
	defer c.Abort()
	huge, written := make([]byte, 4<<20), 0
	l.Turn(func(*act.Task) {
		var err error
		written, err = c.Write(huge)
		require.Implements(t, (*act.Blocked)(nil), err)
	})
	l.OS.Forget()
	o := spawn(l.S, &sending{c: c, f: f, n: 100}).begun(l)
	l.For(5 * time.Millisecond)
	require.Equal(t, 1, o.turns)
	require.Zero(t, l.OS.Count("sendfile"), "it must not overtake")
	got := slowly(peer)
	require.Equal(t, act.Done, o.over(l))
	require.Equal(t, 2, o.turns)
	require.NoError(t, c.Close())
	require.NoError(t, l.S.Run())
	all := <-got
	require.Equal(t, string(content), string(all[written:]))
}

func TestSendFileBeyondTheEndReturnsErrUnexpectedEOF(t *testing.T) {
	eachWay(t, func(t *testing.T, l *servertest.Stepped, _ string, conn func(listener.Limits) (*listener.Conn, net.Conn)) {
		f, content := file(t, 20_000)
		c, peer := conn(listener.Limits{})
		defer c.Abort()
		require.NoError(t, f.Truncate(7000))
		l.Turn(func(*act.Task) {
			n, err := c.SendFile(f, 1000, 19_000)
			require.Equal(t, io.ErrUnexpectedEOF, err)
			require.EqualValues(t, 6000, n)
			n, err = c.SendFile(f, 7000, 1)
			require.Equal(t, io.ErrUnexpectedEOF, err)
			require.Zero(t, n)
			_, err = c.WriteString("the connection is as it was")
			require.NoError(t, err)
		})
		servertest.Expect(t, peer, string(content[1000:7000])+"the connection is as it was")
	})
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

func TestAPeerThatGoesAwayIsNoticedInTheMiddleOfAFile(t *testing.T) {
	eachWay(t, func(t *testing.T, l *servertest.Stepped, _ string, conn func(listener.Limits) (*listener.Conn, net.Conn)) {
		f, content := file(t, 16<<20)
		c, peer := conn(listener.Limits{})
		o := spawn(l.S, &sending{c: c, f: f, n: int64(len(content))}).begun(l)
		l.Until("it waits", func() bool { return o.directive == act.Wait })
		if _, ok := peer.(*net.TCPConn); ok {
			servertest.Reset(t, peer)
		} else {
			require.NoError(t, peer.Close())
		}
		require.Equal(t, act.Failed, o.over(l))
		require.True(t, errors.Is(o.err, syscall.ECONNRESET) || errors.Is(o.err, syscall.EPIPE), "%v", o.err)
		_, err := c.SendFile(f, 0, 1)
		require.Equal(t, o.err, err)
		_, err = c.WriteString("x")
		require.Equal(t, o.err, err)
		require.Equal(t, o.err, c.Sent())
		require.NoError(t, c.Close())
		require.NoError(t, l.S.Run())
	})
}

func TestAFileHasADeadlineAsAWriteHas(t *testing.T) {
	for way, conn := range ways {
		t.Run(way, func(t *testing.T) {
			l, clock := virtual(t)
			f, content := file(t, 16<<20)
			c, peer := conn(l, "unix", listener.Limits{})
			defer c.Abort()
			require.NoError(t, c.SetWriteDeadline(l.S.Clock().Wall().Add(3*time.Second)))
			o := spawn(l.S, &sending{c: c, f: f, n: int64(len(content))}).begun(l)
			l.Until("it waits", func() bool { return o.directive == act.Wait })
			pass(l, clock, 2*time.Second)
			require.Equal(t, act.Wait, o.directive)
			pass(l, clock, time.Second)
			require.Equal(t, act.Failed, o.over(l))
			require.Equal(t, os.ErrDeadlineExceeded, o.err)
			go func() { _, _ = io.Copy(io.Discard, peer) }()
			l.Until("what was taken is sent", func() bool { return c.Queued() == 0 })
			_, err := c.SendFile(f, 0, 1)
			require.Equal(t, os.ErrDeadlineExceeded, err, "also with room")
			require.NoError(t, c.SetWriteDeadline(time.Time{}))
			o = spawn(l.S, &sending{c: c, f: f, n: 10})
			require.Equal(t, act.Done, o.over(l))
		})
	}
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

// Small marks, of which some are smaller than what is gathered, and a system that takes little at a time.
func TestAFileThroughSmallLimits(t *testing.T) {
	for _, high := range []int{1, 100, listener.Gathered, listener.Gathered + 1, 9000} {
		for way, conn := range ways {
			l := servertest.New(t, act.Config{})
			f, content := file(t, 1<<20)
			c, peer := conn(l, "unix", listener.Limits{High: high})
			got := slowly(peer)
			l.Turn(func(*act.Task) { _, _ = c.WriteString(strings.Repeat("-", 100)) })
			o := spawn(l.S, &sending{c: c, f: f, n: int64(len(content))})
			require.Equal(t, act.Done, o.over(l), "%s, %d", way, high)
			require.NoError(t, c.Close())
			require.NoError(t, l.S.Run())
			require.True(t, bytes.Equal(content, servertest.Receive(t, got)[100:]))
		}
	}
}

func TestSendingAFileDoesNotAllocate(t *testing.T) {
	for way, conn := range ways {
		t.Run(way, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			f, _ := file(t, 1<<20)
			c, peer := conn(l, "tcp", listener.Limits{})
			heard := make(chan struct{})
			go func() {
				defer close(heard)
				buf := make([]byte, 256<<10)
				for {
					if _, err := peer.Read(buf); err != nil {
						return
					}
				}
			}()
			over := false
			o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
				if over {
					return act.Done
				}
				_, err := c.SendFile(f, 4096, 200_000)
				return listener.Next(t, err)
			})).begun(l)
			step := func() { _, _ = l.S.Step(1) }
			for range 100 {
				step()
			}
			require.Zero(t, testing.AllocsPerRun(300, step))
			over = true
			listener.StreamOf(c).Wake()
			o.over(l)
			c.Abort()
			l.For(time.Millisecond)
			<-heard
		})
	}
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
