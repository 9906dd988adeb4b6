package monitor_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// file returns a file of n zeroes.
func file(t *testing.T, n int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(n))
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Whatever ends the wait for room ends it: a deadline, an error, the end of the Stream.
func TestTheWaitForRoomForAFileEnds(t *testing.T) {
	for name, end := range map[string]func(l *servertest.Stepped, s monitor.Stream){
		"Wake":  func(_ *servertest.Stepped, s monitor.Stream) { s.Wake() },
		"Close": func(_ *servertest.Stepped, s monitor.Stream) { s.Close(time.Millisecond) },
		"Abort": func(_ *servertest.Stepped, s monitor.Stream) { s.Abort() },
		"a failed send": func(l *servertest.Stepped, s monitor.Stream) {
			l.OS.Fail = func(string, int) error { return syscall.EPIPE }
			_, err := s.Send(nil, []byte("x"), 10)
			require.Equal(l.T, syscall.EPIPE, err)
			l.OS.Fail = nil
		},
		"an error that is reported as nothing else": func(l *servertest.Stepped, _ monitor.Stream) {
			l.OS.Events = func(got []netpoll.Event) []netpoll.Event {
				return append(got, netpoll.Event{Tag: 0, Ready: netpoll.Error})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			stream, _ := l.Stream("unix")
			l.For(0) // it is known that there is room, and will not be news
			l.OS.Fail = servertest.Failing("sendfile", syscall.EAGAIN)
			_, err := stream.(monitor.FileSender).SendFile(file(t, 10), 0, 10)
			require.Equal(t, monitor.ErrWouldBlock, err)
			woken := 0
			l.S.Spawn(servertest.Waits(func(t *act.Task) { stream.AwaitOutput(t.Waker(), 0) }, &woken))
			l.For(0)
			require.Zero(t, woken)
			end(l, stream)
			l.Until(name, func() bool { return woken == 1 })
			l.OS.Events = nil
			if name == "Wake" { // for another reason: there is still no room
				l.S.Spawn(servertest.Waits(func(t *act.Task) { stream.AwaitOutput(t.Waker(), 0) }, &woken))
				l.For(0)
				require.Equal(t, 1, woken)
			}
			stream.Abort()
			require.NoError(t, l.S.Run())
		})
	}
}

func TestErrorsOfSendFile(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, _ := l.Stream("unix")
	sender, f, said := stream.(monitor.FileSender), file(t, 10), error(nil)
	l.OS.Fail = func(string, int) error { return said }
	for _, said = range []error{syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOTSUP} {
		_, err := sender.SendFile(f, 0, 10)
		require.Equal(t, errors.ErrUnsupported, err, "%v", said)
	}
	said = nil
	_, err := sender.SendFile(f, 10, 10)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	said = syscall.EIO
	gone := file(t, 10)
	require.NoError(t, gone.Close())
	_, err = sender.SendFile(gone, 0, 10)
	require.ErrorIs(t, err, fs.ErrClosed, "the file's fault")
	_, err = stream.Queued()
	require.NoError(t, err)
	said = syscall.EPIPE
	_, err = sender.SendFile(f, 10, 10)
	require.Equal(t, syscall.EPIPE, err, "the end of a file is no fault")
	_, err = stream.Queued()
	require.Equal(t, syscall.EPIPE, err, "it is kept")
	stream.Abort()
	_, err = sender.SendFile(f, 0, 10)
	requireClosed(t, stream)
	require.Error(t, err)
}
