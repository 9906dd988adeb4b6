package readiness_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

func TestConnectionsThatAreBeingClosedAreInTheCut(t *testing.T) {
	l := servertest.New(t, act.Config{})
	full, slow := l.Stream("tcp", nil)
	closed, silent := l.Stream("tcp", nil)
	_, _ = l.Stream("tcp", nil) // not closed
	_, err := full.Send(nil, make([]byte, 32<<20), 64<<20)
	require.NoError(t, err)
	full.Close(time.Minute)
	l.For(20 * time.Millisecond)
	closed.Close(time.Hour)
	l.For(time.Millisecond)

	// In parts, as a scheduler that goes on is asked.
	var seen []hook.Lingering
	parts, e := 0, l.Engine()
	for from := 0; parts == 0 || from != 0; parts++ {
		from = e.EachClosing(from, 1, func(x hook.Closing) {
			require.GreaterOrEqual(t, x.Still(), time.Duration(0))
			seen = append(seen, x.Closing())
		})
	}
	require.Equal(t, 3, parts)
	require.Len(t, seen, 2)
	require.NotZero(t, seen[0].Queued)
	require.Zero(t, seen[1].Queued)

	var cut *shutdown.Cut
	require.True(t, errors.As(l.S.Close(), &cut))
	require.Equal(t, 2, cut.Lingering)
	require.Len(t, cut.Left, 2)
	for i, peer := range []string{slow.LocalAddr().String(), silent.LocalAddr().String()} {
		row := cut.Left[i]
		require.Equal(t, peer, row.Peer)
		require.Equal(t, "a closed connection of tcp "+[]string{slow.RemoteAddr().String(), silent.RemoteAddr().String()}[i], row.Name)
		require.Equal(t, "closing", row.State)
		require.Regexp(t, []string{`^room: \d+ bytes queued$`, "^its peer to close$"}[i], row.Waits[0])
		require.Regexp(t, []string{`^a timer due in [345]\d\.`, `^a timer due in 59m\d`}[i], row.Waits[1]) // of a minute, and of an hour
	}
	require.Zero(t, l.Engine().EachClosing(0, 100, func(hook.Closing) { t.Fatal("it is gone") }))
}
