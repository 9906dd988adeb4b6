package wheel

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

const second = 1_000_000_000

// filled returns a wheel at an ordinary time with n nodes armed in the next minute.
func filled(n int) (w *Wheel[int], now int64) {
	w = new(Wheel[int])
	now = 1_234_567_890_123
	w.Pop(now)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		w.Arm(&Node[int]{Of: i}, now+1+random.Int64N(60*second))
	}
	return w, now
}

func BenchmarkArmDisarm(b *testing.B) {
	for _, others := range []int{0, 1, 100_000} {
		b.Run("others="+strconv.Itoa(others), func(b *testing.B) {
			w, now := filled(others)
			var n Node[int]
			b.ReportAllocs()
			for b.Loop() {
				w.Arm(&n, now+5*second)
				w.Disarm(&n)
				now++
			}
		})
	}
}
