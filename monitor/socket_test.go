package monitor_test

import (
	"io"
	"net"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

var errClosed = net.ErrClosed

// requireClosed requires every call to report that the stream was given up, and none to do harm.
func requireClosed(t *testing.T, stream monitor.Stream) {
	t.Helper()
	_, err := stream.Lend(1)
	require.Equal(t, errClosed, err)
	_, err = stream.Receive(make([]byte, 1))
	require.Equal(t, errClosed, err)
	_, err = stream.Send(nil, []byte("x"), 1)
	require.Equal(t, errClosed, err)
	n, err := stream.Queued()
	require.Zero(t, n)
	require.Equal(t, errClosed, err)
	require.Equal(t, errClosed, stream.CloseWrite())
	require.Nil(t, stream.LocalAddr())
	require.Nil(t, stream.PeerAddr())
	stream.Abort()
	stream.Close(0)
	stream.Wake()
}

func TestASocketAtRestIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, monitor.SocketSize, uintptr(48))
	}
}

// receiveAll lends until ErrWouldBlock or an end.
func receiveAll(stream monitor.Stream) (got []byte, err error) {
	for {
		part, err := stream.Lend(64 << 10)
		if err != nil {
			return got, err
		}
		got = append(got, part...)
	}
}

// listen gathers in *got what stream receives from now on, and notes in *end how it ends.
func listen(l *servertest.Stepped, stream monitor.Stream, got *[]byte, end *error) {
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		part, err := receiveAll(stream)
		*got = append(*got, part...)
		if err == monitor.ErrWouldBlock {
			stream.AwaitInput(t.Waker())
			return act.Wait
		}
		*end = err
		return act.Done
	}))
}

// drained reads everything from peer in the background, and hands over how much that was.
func drained(peer net.Conn) <-chan int {
	total := make(chan int, 1)
	go func() {
		n, _ := io.Copy(io.Discard, peer)
		total <- int(n)
	}()
	return total
}

func TestAwaitWakesAtOnceWhenThereIsNothingToWaitFor(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp")
	defer stream.Abort()
	woken := 0
	l.S.Spawn(servertest.Waits(func(t *act.Task) { stream.AwaitOutput(t.Waker(), 0) }, &woken))
	l.Until("an empty queue", func() bool { return woken == 1 })
	servertest.Send(t, peer, "x")
	l.For(0) // it is known now, and no task was waiting
	l.S.Spawn(servertest.Waits(func(t *act.Task) { stream.AwaitInput(t.Waker()) }, &woken))
	l.Until("input", func() bool { return woken == 2 })
}

// What was broken: a reset after the peer's end is reported by the next send and by SO_ERROR, while a receive reports a
// normal end, so that bytes which were never taken looked delivered.
func TestAnEndWithAResetBehindItIsNoOrderlyEnd(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp")
	defer stream.Abort()
	require.NoError(t, peer.Close())
	l.Until("the end", func() bool { return monitor.Reported(stream, netpoll.PeerClosed) })
	_, err := stream.Send(nil, []byte("is anybody there?"), 100)
	require.NoError(t, err, "the system does not know yet")
	l.Until("the reset", func() bool { return monitor.Reported(stream, netpoll.Error) })
	_, err = stream.Lend(100)
	require.Error(t, err)
	require.NotEqual(t, io.EOF, err)
	_, again := stream.Lend(100)
	require.Equal(t, err, again)
	_, queued := stream.Queued()
	require.Equal(t, err, queued)
}

// Systems report it differently; a task that waits to receive must be woken.
func TestTheEndWakesEvenIfItIsNotReportedAsInput(t *testing.T) {
	for _, said := range []netpoll.Ready{netpoll.PeerClosed, netpoll.Error, netpoll.PeerClosed | netpoll.Error} {
		l := servertest.New(t, act.Config{})
		stream, peer := l.Stream("tcp")
		var got []byte
		var end error
		listen(l, stream, &got, &end)
		l.For(0)
		l.OS.Events = func(all []netpoll.Event) []netpoll.Event {
			for i := range all {
				all[i].Ready = said
			}
			return all
		}
		require.NoError(t, peer.Close())
		l.Until(said.String(), func() bool { return end == io.EOF })
		stream.Abort()
	}
}
