package secure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No more functions run than there are slots, and those that wait have their turns.
func TestSlotsBoundWhatIsComputed(t *testing.T) {
	for _, n := range []int{1, 3} {
		h := (&Handshakes{Slots: n}).slots()
		var running, most atomic.Int32
		var all sync.WaitGroup
		all.Add(200)
		for range 200 {
			h.execute(func() {
				defer all.Done()
				now := running.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				runtime.Gosched()
				running.Add(-1)
			}, time.Hour)
		}
		all.Wait()
		require.LessOrEqual(t, most.Load(), int32(n))
	}
}

// A function that takes long goes on without its slot, which it gives back once.
func TestAFunctionThatTakesLongHasNoSlot(t *testing.T) {
	h := (&Handshakes{Slots: 1}).slots()
	release := make(chan struct{})
	var slow, quick sync.WaitGroup
	for range 10 {
		slow.Add(1)
		h.Execute(func() {
			defer slow.Done()
			<-release
		})
	}
	quick.Add(1)
	h.Execute(quick.Done)
	quick.Wait()
	close(release)
	slow.Wait()
	require.Eventually(t, func() bool { return len(h) == 0 }, 20*time.Second, time.Millisecond)
}

func TestAtLeastOneSlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.Equal(t, 1, cap((&Handshakes{}).slots()))
	runtime.GOMAXPROCS(4)
	require.Equal(t, 3, cap((&Handshakes{}).slots()))
}
