package http2

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A peer and its receiver do what they like. Nothing is lost, no frame is for little, and the peer can always go on when
// all is read.
func TestInflow(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		size := uint32(r.IntN(100))
		f := NewInflow(size)
		window, held := int(size), 0 // as the peer and the reader see them
		for range 200 {
			n := r.IntN(50)
			switch r.IntN(4) {
			case 0:
				require.Equal(t, n <= window, f.Receive(uint32(n)))
				if n <= window {
					window, held = window-n, held+n
				}
			case 1:
				n = min(n, held)
				f.Take(uint32(n))
				held -= n
			case 2:
				if increment := int(f.Give()); increment > 0 {
					require.GreaterOrEqual(t, 2*increment, int(size))
					window += increment
				}
				require.True(t, window+held > 0 || size == 0)
			case 3:
				if n < 3 {
					f.Grow(uint32(n))
					size += uint32(n)
				}
			}
			require.NoError(t, f.Check())
			require.EqualValues(t, held, f.Held())
			require.Equal(t, size, f.Size())
		}
	}
}

func TestInflowAtItsEnds(t *testing.T) {
	f := NewInflow(MaxWindow)
	require.False(t, f.Receive(MaxWindow+1), "6.9.1")
	require.False(t, f.Receive(1<<32-1))
	require.True(t, f.Receive(MaxWindow))
	require.False(t, f.Receive(1))
	f.Take(MaxWindow / 2)
	require.Zero(t, f.Give(), "less than half")
	require.PanicsWithValue(t, "http2: 2000000000 bytes are taken of 1073741824 that are held", func() { f.Take(2e9) })
	f.Take(1)
	require.EqualValues(t, MaxWindow/2+1, f.Give())
	require.Zero(t, f.Give(), "it was given")
	f.Grow(9)
	require.EqualValues(t, MaxWindow, f.Size(), "6.9.1")
	require.NoError(t, f.Check())

	f = NewInflow(10)
	require.True(t, f.Receive(5))
	f.Take(4)
	require.Zero(t, f.Give())
	f.Take(1)
	require.EqualValues(t, 5, f.Give(), "half")

	f = NewInflow(0)
	require.Zero(t, f.Give())
	f.Grow(DefaultWindow)
	require.EqualValues(t, DefaultWindow, f.Give())
	for _, broken := range []Inflow{{size: 1}, {size: 1, window: 2, held: -1}, {size: 1, owed: 2, window: -1}, {held: 1}} {
		require.Error(t, broken.Check())
	}
}

func TestOutflow(t *testing.T) {
	var f Outflow
	require.Zero(t, f.Room())
	require.Panics(t, func() { f.Take(1) })
	require.True(t, f.Add(DefaultWindow))
	f.Take(DefaultWindow - 1)
	require.Equal(t, 1, f.Room())
	require.True(t, f.Add(-10), "6.9.2 a smaller initial window")
	require.Zero(t, f.Room())
	require.Panics(t, func() { f.Take(1) })
	require.NotPanics(t, func() { f.Take(0) }, "an empty frame needs no room")
	require.True(t, f.Add(9))
	require.Zero(t, f.Room())
	require.True(t, f.Add(MaxWindow))
	require.Equal(t, MaxWindow, f.Room())
	require.False(t, f.Add(1), "6.9.1")
	require.Equal(t, MaxWindow, f.Room())
	f.Take(MaxWindow)
	require.True(t, f.Add(-MaxWindow))
	require.False(t, f.Add(-1))
	require.True(t, f.Add(MaxWindow))
	require.Zero(t, f.Room())
}
