package monitor_test

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// Room that the system reports between a call that finds none and Full is not missed, and what is reported later wakes.
func TestALentSocketWaitsForRoom(t *testing.T) {
	l := servertest.New(t, act.Config{})
	s, peer := l.Stream("unix")
	l.For(0) // it is known that there is room, and will not be news
	o := s.(monitor.OutputLender).LendOutput()
	require.Nil(t, s.(monitor.OutputLender).LendOutput(), "it is lent")
	text := make([]byte, 1<<20)
	sent := 0
	for err := error(nil); err == nil; {
		var n int
		n, err = o.Send([]byte("ab"), text)
		sent += n
		require.True(t, err == nil || err == monitor.ErrWouldBlock)
	}
	require.EqualValues(t, sent, o.Sent())
	require.True(t, o.Full())
	woken := 0
	wait := func() { l.S.Spawn(servertest.Waits(func(t *act.Task) { o.Await(t.Waker()) }, &woken)) }
	wait()
	l.For(0)
	require.Zero(t, woken)
	_, err := io.ReadFull(peer, make([]byte, sent))
	require.NoError(t, err)
	l.Until("room", func() bool { return woken == 1 })
	require.False(t, o.Full())

	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	_, err = o.Send(nil, text)
	require.Equal(t, monitor.ErrWouldBlock, err)
	require.True(t, o.Full())
	o.Return()
	o = s.(monitor.OutputLender).LendOutput() // there was no room for the other one
	_, err = o.Send(nil, text)
	require.Equal(t, monitor.ErrWouldBlock, err)
	l.OS.Events = func(got []netpoll.Event) []netpoll.Event {
		return append(got, netpoll.Event{Tag: 0, Ready: netpoll.Out})
	}
	l.For(0)
	require.False(t, o.Full(), "there was room meanwhile")
	l.OS.Events, l.OS.Fail = nil, nil
	o.Return()
	_, err = s.Send(nil, []byte("x"), 10)
	require.NoError(t, err)
	counts := servertest.CountsOf(l.S)
	require.EqualValues(t, sent+1, counts["sent_bytes_total"], "%v", counts)
	s.Abort()
	require.NoError(t, l.S.Run())
}

func TestWhatEndsALoan(t *testing.T) {
	for name, end := range map[string]func(s monitor.Stream, o monitor.Output){
		"Return": func(_ monitor.Stream, o monitor.Output) { o.Return() },
		"Close":  func(s monitor.Stream, _ monitor.Output) { s.Close(time.Hour) },
		"Abort":  func(s monitor.Stream, _ monitor.Output) { s.Abort() },
	} {
		l := servertest.New(t, act.Config{})
		s, _ := l.Stream("unix")
		o := s.(monitor.OutputLender).LendOutput()
		end(s, o)
		_, err := o.Send(nil, []byte("x"))
		require.Equal(t, errClosed, err, name)
		_, err = o.SendFile(file(t, 10), 0, 10)
		require.Equal(t, errClosed, err, name)
		require.False(t, o.Full(), name)
		o.Return()
		s.Abort()
	}
}

// The error of the system stays, and is that of the Socket when the loan has ended.
func TestALoanKeepsItsError(t *testing.T) {
	for _, call := range []string{"send", "sendfile"} {
		l := servertest.New(t, act.Config{})
		s, _ := l.Stream("unix")
		o := s.(monitor.OutputLender).LendOutput()
		gone := file(t, 10)
		_, err := o.SendFile(gone, 10, 10)
		require.Equal(t, io.ErrUnexpectedEOF, err)
		require.NoError(t, gone.Close())
		_, err = o.SendFile(gone, 0, 10)
		require.Error(t, err, "that is the file's")
		l.OS.Fail = servertest.Failing(call, syscall.EPIPE)
		if call == "send" {
			_, err = o.Send(nil, []byte("x"))
		} else {
			_, err = o.SendFile(file(t, 10), 0, 10)
		}
		require.Equal(t, syscall.EPIPE, err)
		l.OS.Fail = nil
		_, err = o.Send(nil, []byte("x"))
		require.Equal(t, syscall.EPIPE, err)
		o.Return()
		_, err = s.Queued()
		require.Equal(t, syscall.EPIPE, err)
		require.Nil(t, s.(monitor.OutputLender).LendOutput())
		s.Abort()
	}
	l := servertest.New(t, act.Config{})
	s, peer := l.Stream("unix")
	o := s.(monitor.OutputLender).LendOutput()
	_, err := peer.Write([]byte("x"))
	require.NoError(t, err)
	l.OS.Fail = func(call string, _ int) error {
		return map[string]error{"send": syscall.EAGAIN, "receive": syscall.ECONNRESET}[call]
	}
	_, err = o.Send(nil, []byte("x"))
	require.Equal(t, monitor.ErrWouldBlock, err)
	l.Until("an event", func() bool {
		_, err := s.Receive(make([]byte, 1))
		return err == syscall.ECONNRESET
	})
	require.False(t, o.Full(), "nothing is to be waited for")
	s.Abort()
}
