package inbox

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClaimedPlaceHoldsUpWhatIsBehindIt(t *testing.T) {
	r := NewRing[string](2)
	place, ok := r.Claim()
	require.True(t, ok)
	require.True(t, r.Push("second"))
	require.True(t, r.Full())
	_, ok = r.Claim()
	require.False(t, ok)
	_, ok = r.Pop()
	require.False(t, ok)
	require.False(t, r.Empty())
	r.Fill(place, "first")
	for _, want := range []string{"first", "second"} {
		v, ok := r.Pop()
		require.True(t, ok)
		require.Equal(t, want, v)
	}
	require.False(t, r.Full())
	require.True(t, r.Push("third") && r.Push("fourth") && r.Full())
	r.Close()
	require.False(t, r.Full(), "no producer waits for it")
	_, ok = r.Claim()
	require.False(t, ok)
}

// counter is a waker.
type counter struct{ *atomic.Int32 }

func (c counter) Wake() { c.Add(1) }

// Producers wait for a consumer that pops as fast as it can: each wait ends, and nothing is lost.
func TestWaitersAreWokenWhenThereIsRoom(t *testing.T) {
	const n = 1000
	r := NewRing[int](1)
	var room Room[counter]
	var woken atomic.Int32
	full := true
	isFull := func() bool { return full }
	room.Add(counter{&woken}, isFull)
	require.Zero(t, woken.Load())
	room.Announce()
	room.Announce()
	require.EqualValues(t, 1, woken.Load(), "once")
	full = false
	room.Add(counter{&woken}, isFull)
	require.EqualValues(t, 2, woken.Load(), "there was room already")
	room.Announce()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for i := range n {
				for !r.Push(i) {
					room.Wait(r.Full)
				}
			}
		})
	}
	for left := 3 * n; left > 0; {
		if _, ok := r.Pop(); ok {
			left--
			room.Announce()
		}
	}
	all.Wait()
}
