//go:build race

package monitor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
)

func TestWhatWasReceivedAheadIsOverwrittenAfterItsTurn(t *testing.T) {
	l := servertest.New(t, act.Config{})
	require.NoError(t, monitor.Use(monitor.Uring)(l.S))
	stream, peer := l.Stream("tcp")
	defer stream.Abort()
	waits, loan, in := false, []byte(nil), ""
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		if p, err := stream.Lend(64); err == nil {
			loan, in = p, string(p)
			return act.Done
		}
		stream.AwaitInput(t.Waker())
		waits = true
		return act.Wait
	}))
	l.Until("the wait", func() bool { return waits })
	servertest.Send(t, peer, "hello")
	l.Until("a loan", func() bool { return loan != nil })
	require.Equal(t, "hello", in)
	l.Until("the next poll", func() bool { return string(loan) == "\xdb\xdb\xdb\xdb\xdb" })
}
