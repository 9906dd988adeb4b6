package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
)

func TestACutKeepsTheOldestOfEachKind(t *testing.T) {
	all := &shutdown.Cut{}
	for i := range 40 {
		all.Add(&shutdown.Cut{Left: []shutdown.Unfinished{{Kind: "crowd", Still: time.Duration(i)}}})
	}
	all.Add(&shutdown.Cut{Left: []shutdown.Unfinished{{Kind: "job", Still: -1}}, Kinds: []shutdown.Count{{"job", 1}}})
	require.Len(t, all.Left, 16)
	require.Equal(t, []shutdown.Unfinished{{Kind: "crowd", Still: 39}, {Kind: "job", Still: -1}, {Kind: "crowd", Still: 38}}, all.Left[:3])
	require.Equal(t, []shutdown.Count{{"job", 1}}, all.Kinds)
}
