package secure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With one processor a reactor that has woken up waits in the runtime's global queue, as a goroutine does that has called
// Gosched. Steps that wait for the slot are started by the one before, and would go first, for up to 10 ms.
func TestAReactorThatHasWokenGoesBeforeTheNextStep(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	h := &Handshakes{Slots: 1}
	var done atomic.Int64
	var all sync.WaitGroup
	const steps = 1000
	all.Add(steps)
	for range steps {
		h.slots().Execute(func() {
			for start := time.Now(); time.Since(start) < 20*time.Microsecond; {
			}
			done.Add(1)
			all.Done()
		})
	}
	most := int64(0)
	for before := int64(0); before < steps; before = done.Load() {
		before = done.Load()
		runtime.Gosched()
		most = max(most, done.Load()-before)
	}
	all.Wait()
	require.Less(t, most, int64(steps/10))
}
