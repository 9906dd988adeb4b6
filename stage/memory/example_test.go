package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// What an engine does with a store: a claim, and the end of a stage.
func Example() {
	ctx := context.Background()
	s := memory.New(nil)
	ids, _ := s.Enqueue(ctx, store.NewTask{Kind: "report", Stage: "CREATED", Data: []byte("2026")})

	claimed, _ := s.Claim(ctx, store.Claim{
		Worker: "ann", Kinds: []string{"report"}, Limit: 8, Length: 15 * time.Second,
		Shows: []store.Show{{Kind: "report", Found: "CREATED", Stage: "BUILDING"}},
	})
	t, _ := s.Get(ctx, ids[0])
	fmt.Println(t.Stage, t.Status)

	_ = s.Finish(ctx, claimed[0].Lease(), store.Passage{From: "BUILDING", To: "BUILT", Last: true}, func(_ context.Context, tx store.Tx) error {
		tx.SetData([]byte("the report of 2026"))
		return nil
	})
	t, _ = s.Get(ctx, ids[0])
	fmt.Println(t.Stage, t.Status, string(t.Data))
	// Output:
	// BUILDING IN_PROCESSING
	// BUILT NORMAL the report of 2026
}
