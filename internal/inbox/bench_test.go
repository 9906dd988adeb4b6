package inbox

import (
	"testing"
)

func BenchmarkRingPushPop(b *testing.B) {
	r := NewRing[int](256)
	b.ReportAllocs()
	for b.Loop() {
		r.Push(1)
		r.Pop()
	}
}

func BenchmarkStackPushTake(b *testing.B) {
	var s Stack[int]
	var n Node[int]
	b.ReportAllocs()
	for b.Loop() {
		s.Push(&n)
		s.TakeAll()
	}
}
