package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// BenchmarkStore measures the calls that an engine makes, one at a time. open is called for each benchmark, and registers with b
// the closing of what it opens. The clock of the store must run.
func BenchmarkStore(b *testing.B, open func(b *testing.B) store.Store) {
	ctx := context.Background()
	data := []byte("some 30 bytes, as a task's are")
	fill := func(b *testing.B, s store.Store, n int) {
		for range n {
			if _, err := s.Enqueue(ctx, store.NewTask{Kind: "a", Stage: "NEW", Data: data}); err != nil {
				b.Fatal(err)
			}
		}
	}
	claim := func(b *testing.B, s store.Store, length time.Duration) []store.Task {
		claimed, err := s.Claim(ctx, store.Claim{Worker: "ann", Kinds: []string{"a"}, Limit: 8, Length: length, Shows: []store.Show{{Kind: "a", Found: "NEW", Stage: "DOING"}}})
		if err != nil || len(claimed) != 8 {
			b.Fatal(len(claimed), err)
		}
		return claimed
	}

	b.Run("Claim of 8", func(b *testing.B) {
		s := open(b)
		fill(b, s, 1000)
		b.ReportAllocs()
		for b.Loop() {
			claim(b, s, 0) // and they are due again
		}
	})
	b.Run("Enter and Finish", func(b *testing.B) {
		s := open(b)
		fill(b, s, 8)
		l := claim(b, s, time.Hour)[0].Lease()
		commit := func(_ context.Context, tx store.Tx) error {
			tx.SetData(data)
			return nil
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Enter(ctx, l, "DOING", 0); err != nil {
				b.Fatal(err)
			}
			if err := s.Finish(ctx, l, store.Passage{From: "DOING", To: "NEW"}, commit); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Heartbeat of 8 with progress", func(b *testing.B) {
		s := open(b)
		fill(b, s, 8)
		var all []store.Renewal
		for _, t := range claim(b, s, time.Hour) {
			all = append(all, store.Renewal{Lease: t.Lease(), Progress: store.Progress{Stage: t.Stage, Data: make([]byte, 64)}})
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Heartbeat(ctx, all, time.Hour); err != nil {
				b.Fatal(err)
			}
		}
	})
}
