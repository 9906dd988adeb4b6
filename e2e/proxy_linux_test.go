package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the proxy keeps for a peer that does not read is bounded: Limits.Read and Limits.High, 128 KiB, for each.
// Without back-pressure it would be the 50 × 40 MiB that are sent.
func TestProxyMemoryIsBounded(t *testing.T) {
	t.Parallel()
	outside(t)
	const stuck = 50
	data := content(4, 10<<20)
	underEachIdle(t, func(t *testing.T, idle idle) {
		t.Parallel()
		l := behind(t)
		proxy := serve(t, "proxy", idle.with("-to", l.Addr().String())...)
		before := proxy.Resident(t)
		results := make(chan error, stuck)
		for range stuck {
			near, _ := pair(t, proxy, l)
			require.NoError(t, near.SetDeadline(time.Now().Add(time.Second)))
			go func() { results <- written(near, data, 4) }()
		}
		for range stuck {
			require.ErrorIs(t, <-results, os.ErrDeadlineExceeded, "it was held up")
		}
		// Twice that for the collector; under the race detector memory costs a multiple.
		require.Less(t, proxy.Resident(t)-before, stuck*128<<10*2*5)
	})
}
