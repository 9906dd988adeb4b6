package listener_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

func TestAStreamWithoutACloseNotifierIsNotWaitedFor(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp")
	c := listener.NewConn(l.S, struct{ monitor.Stream }{stream}, listener.Limits{})
	defer c.Abort()
	l.Turn(func(task *act.Task) {
		require.NoError(t, peer.Close())
		half, err := c.Ended(task)
		require.False(t, half)
		require.NoError(t, err)
	})
}

func TestAskingForTheEndDoesNotAllocate(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	l.Turn(func(task *act.Task) {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.Ended(task) }))
	})
}
