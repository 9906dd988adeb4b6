package transition

import (
	"cmp"

	"github.com/daimon-go/daimon/stage/store"
)

// CountOrder compares counts by the order in which a store returns them.
func CountOrder(a, b store.Count) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Status, b.Status))
}
