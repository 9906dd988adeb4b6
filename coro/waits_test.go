package coro_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// A coroutine says what it is suspended on.
func TestWaitsOfACoroutine(t *testing.T) {
	l := bench(t)
	under, peer := l.Conn("tcp", listener.Limits{})
	other, _ := l.Conn("tcp", listener.Limits{})
	box := monitor.NewMailbox[int](1)
	f := future.New[int](l.S)
	p := play(l, func(co *coro.Co) error {
		c := co.Conn(under)
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		_, err := box.Take()
		if err := co.Unblock(err); err != nil {
			return err
		}
		if err := co.Sleep(time.Millisecond); err != nil {
			return err
		}
		if _, err := coro.Value(co, f); err != nil {
			return err
		}
		_, err = c.WriteTo(co.Conn(other))
		if err != nil {
			return err
		}
		_, err = c.Write(make([]byte, 64<<20))
		return err
	})
	from := "input from " + peer.LocalAddr().String()
	l.UntilSaid(from)
	servertest.Send(t, peer, "x")
	l.UntilSaid("a value in a *monitor.Mailbox[int]")
	require.NoError(t, box.Send(1))
	monitors := "a future that is resolved"
	l.UntilSaid("a future", monitors)
	require.NoError(t, f.Resolve(1))
	l.UntilSaid(from, monitors)
	require.NoError(t, peer.(interface{ CloseWrite() error }).CloseWrite())
	l.Until("a queue", func() bool { return len(servertest.Said(l.S)) == 2 && under.Queued() > 0 })
	require.Equal(t, fmt.Sprintf("room: %d bytes queued for %v", under.Queued(), peer.LocalAddr()), servertest.Said(l.S)[0])
	under.Abort()
	other.Abort()
	require.Error(t, p.end())
	require.Equal(t, []string{monitors}, servertest.Said(l.S))
}
