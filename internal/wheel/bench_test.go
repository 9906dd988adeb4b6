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

// Moving a deadline further off, as with each byte a connection receives.
func BenchmarkRearm(b *testing.B) {
	w, now := filled(100_000)
	var n Node[int]
	b.ReportAllocs()
	for b.Loop() {
		w.Arm(&n, now+5*second)
		now += 1000
	}
}

// All nodes of a large set armed, then all disarmed: what memory costs.
func BenchmarkSetOf100k(b *testing.B) {
	w, now := filled(0)
	nodes := make([]Node[int], 100_000)
	b.ReportAllocs()
	for b.Loop() {
		for i := range nodes {
			w.Arm(&nodes[i], now+int64(i)*12345)
		}
		for i := range nodes {
			w.Disarm(&nodes[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(nodes)), "ns/node")
}

func BenchmarkArmPop(b *testing.B) {
	for _, others := range []int{0, 1, 100_000} {
		b.Run("others="+strconv.Itoa(others), func(b *testing.B) {
			w, now := filled(others)
			b.ReportAllocs()
			var n Node[int]
			w.Arm(&n, now)
			for b.Loop() { // a popped node is armed again, so that their number stays
				popped := w.Pop(now)
				for popped == nil {
					now, _ = w.Next()
					popped = w.Pop(now)
				}
				w.Arm(popped, now+60*second)
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	w, _ := filled(100_000)
	b.ReportAllocs()
	for b.Loop() {
		w.Next()
	}
}
