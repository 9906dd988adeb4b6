package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// What an engine does with a store: a claim, and the end of a stage.
func Example() {
	ctx := context.Background()
	s := memory.New(nil)
	ids, _ := s.Enqueue(ctx, stage.NewTask{Kind: "report", Stage: "CREATED", Data: []byte("2026")})

	claimed, _ := s.Claim(ctx, stage.Claim{
		Worker: "ann", Kinds: []string{"report"}, Limit: 8, Length: 15 * time.Second,
		Shows: []stage.Show{{Kind: "report", Found: "CREATED", Stage: "BUILDING"}},
	})
	t, _ := s.Get(ctx, ids[0])
	fmt.Println(t.Stage, t.Status)

	_ = s.Finish(ctx, claimed[0].Lease(), stage.Passage{From: "BUILDING", To: "BUILT", Last: true}, func(_ context.Context, tx stage.Tx) error {
		tx.SetData([]byte("the report of 2026"))
		return nil
	})
	t, _ = s.Get(ctx, ids[0])
	fmt.Println(t.Stage, t.Status, string(t.Data))
	// Output:
	// BUILDING IN_PROCESSING
	// BUILT NORMAL the report of 2026
}
