package wheel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// armed counts the nodes in all rings of w.
func armed[T any](w *Wheel[T]) (n int) {
	count := func(ring *Node[T]) {
		if ring == nil {
			return
		}
		n++
		for at := ring.next; at != ring; at = at.next {
			n++
		}
	}
	count(w.late)
	for level, bitmap := range w.bitmaps {
		for slot := 0; bitmap>>slot != 0; slot++ {
			count(w.slots[level][slot])
		}
	}
	return n
}

func TestANodeOfAnotherWheelPanics(t *testing.T) {
	var here, there Wheel[int]
	var n Node[int]
	there.Arm(&n, 5)
	require.PanicsWithValue(t, "wheel: this node is armed in another wheel", func() { here.Disarm(&n) })
}

func TestAtMostTenLooksAreEarly(t *testing.T) {
	for _, when := range []int64{65, 5000, 1 << 30, 1<<35 + 1, 1<<60 - 1, 1<<62 + 12345, math.MaxInt64} {
		var w Wheel[int]
		for range 2 * nextScan {
			w.Arm(new(Node[int]), when)
		}
		early, now := 0, int64(-1)
		for {
			next, ok := w.Next()
			require.True(t, ok)
			require.Greater(t, next, now, "progress")
			require.LessOrEqual(t, next, when, "not too late")
			now = next
			if w.Pop(now) != nil {
				break
			}
			early++
		}
		require.Equal(t, when, now)
		require.LessOrEqual(t, early, 10)
	}
}

func TestNothingAllocates(t *testing.T) {
	var w Wheel[int]
	nodes := make([]Node[int], 100)
	now := int64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range nodes {
			w.Arm(&nodes[i], now+int64(i)*1_000_003)
		}
		w.Next()
		w.Disarm(&nodes[50])
		for now += 1_000_003 * 200; w.Pop(now) != nil; {
		}
	}))
	require.Zero(t, armed(&w))
}
