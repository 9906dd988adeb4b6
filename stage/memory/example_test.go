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
	id, _ := s.Enqueue(ctx, "report", "CREATED", []byte("2026"))

	claimed, _ := s.Claim(ctx, stage.Claim{
		Worker: "ann", Kinds: []string{"report"}, Limit: 8, Length: 15 * time.Second,
		Enter: func(t *stage.Task) (string, int) { return "BUILDING", t.Attempt },
	})
	t, _ := s.Get(ctx, id)
	fmt.Println(t.Stage, t.Status)

	_ = s.Finish(ctx, claimed[0].Lease(), stage.Passage{From: "BUILDING", To: "BUILT", Last: true}, func(tx stage.Tx) error {
		tx.SetData([]byte("the report of 2026"))
		return nil
	})
	t, _ = s.Get(ctx, id)
	fmt.Println(t.Stage, t.Status, string(t.Data))
	// Output:
	// BUILDING IN_PROCESSING
	// BUILT NORMAL the report of 2026
}
