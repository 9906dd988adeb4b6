package coro_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// A coroutine says what it is suspended on.
func TestWaitsOfACoroutine(t *testing.T) {
	l := bench(t)
	box := listener.NewMailbox[int](1)
	f := future.New[int](l.S)
	p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		_, err := box.Take()
		if err := c.Co().Unblock(err); err != nil {
			return err
		}
		_, err = coro.Value(c.Co(), f)
		return err
	})
	l.UntilSaid("input from " + peer.LocalAddr().String())
	servertest.Send(t, peer, "x")
	l.UntilSaid("a value in a *listener.Mailbox[int]")
	require.NoError(t, box.Send(1))
	l.UntilSaid("a future")
	require.NoError(t, f.Resolve(1))
	require.NoError(t, p.end())
}
