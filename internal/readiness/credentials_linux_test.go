package readiness_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/monitor"
)

// A receiver with SO_PASSCRED is given the bytes of one sender at a time (unix(7)): where the credentials
// change, with more behind, a read is short.
func TestAllThatIsBehindOtherCredentialsIsReceived(t *testing.T) {
	l := servertest.New(t, act.Config{})
	fd, peer := l.Pair("unix")
	stream, err := l.Engine().Adopt(fd, true, (*monitor.ConnLimiter)(nil))
	require.NoError(t, err)
	defer stream.Abort()
	passCredentials := func(on int) {
		require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, on))
	}
	mine := unix.UnixCredentials(&unix.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())})

	// Without the option nothing is added: bytes with no credentials stand beside those with some.
	servertest.Send(t, peer, "before")
	raw(t, peer, func(fd int) error { return unix.Sendmsg(fd, []byte("beside"), mine, nil, 0) })
	servertest.Send(t, peer, "behind")
	passCredentials(1)
	servertest.Send(t, peer, "at last")
	looks := 0
	l.OS.Events = func(got []netpoll.Event) []netpoll.Event { looks += len(got); return got }
	var got []byte
	var end error
	listen(l, stream, &got, &end)
	l.Until("all parts", func() bool { return string(got) == "beforebesidebehindat last" })
	require.Equal(t, 1, looks, "of one edge")
	require.GreaterOrEqual(t, l.OS.Count("receive"), 4, "each was a short read")

	servertest.Send(t, peer, "and so on")
	require.NoError(t, peer.Close())
	l.Until("the end", func() bool { return end != nil })
	require.Equal(t, io.EOF, end)
	require.Equal(t, "beforebesidebehindat lastand so on", string(got))
}
