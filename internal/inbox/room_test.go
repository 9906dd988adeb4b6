package inbox

import (
	"sync"
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

// Producers wait for a consumer that pops as fast as it can: each wait ends, and nothing is lost.
func TestWaitersAreWokenWhenThereIsRoom(t *testing.T) {
	const n = 1000
	r := NewRing[int](1)
	var room Room
	woken := 0
	wake := func() { woken++ }
	full := true
	isFull := func() bool { return full }
	room.Add(wake, isFull)
	require.Zero(t, woken)
	room.Announce()
	room.Announce()
	require.Equal(t, 1, woken, "once")
	full = false
	room.Add(wake, isFull)
	require.Equal(t, 2, woken, "there was room already")
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
