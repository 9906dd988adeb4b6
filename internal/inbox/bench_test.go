package inbox

import (
	"runtime"
	"sync"
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

func BenchmarkRingEmpty(b *testing.B) {
	r := NewRing[int](256)
	b.ReportAllocs()
	for b.Loop() {
		r.Empty()
	}
}

// Producers on all CPUs and one consumer; an operation is a value that arrived.
func BenchmarkRingManyProducers(b *testing.B) {
	r := NewRing[int](1024)
	b.ReportAllocs()
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for n := p; n < b.N; n += producers {
				for !r.Push(n) {
					runtime.Gosched()
				}
			}
		})
	}
	for left := b.N; left > 0; {
		if _, ok := r.Pop(); ok {
			left--
		} else {
			runtime.Gosched()
		}
	}
	all.Wait()
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

// What a scheduler pays each pass for an inbox in which nothing is.
func BenchmarkStackTakeNothing(b *testing.B) {
	var s Stack[int]
	b.ReportAllocs()
	for b.Loop() {
		s.TakeAll()
	}
}

func BenchmarkStackManyProducers(b *testing.B) {
	var s Stack[int]
	b.ReportAllocs()
	nodes := make([]Node[int], b.N)
	b.ResetTimer()
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for n := p; n < b.N; n += producers {
				s.Push(&nodes[n])
			}
		})
	}
	for left := b.N; left > 0; {
		n := s.TakeAll()
		if n == nil {
			runtime.Gosched()
		}
		for n != nil {
			left--
			n = n.Next()
		}
	}
	all.Wait()
}
