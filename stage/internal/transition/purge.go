package transition

import (
	"cmp"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// Purged reports whether p deletes the task. It does not look at p.Limit.
func Purged(t *store.Task, p store.Purge, now time.Time) bool {
	return t.Ended() && t.Status == p.Status && !t.Changed.After(now.Add(-p.Age))
}

// EndOrder compares tasks that have ended by when they are purged: those that ended before come first, then the lower
// numbers.
func EndOrder(t, u *store.Task) int {
	return cmp.Or(t.Changed.Compare(u.Changed), cmp.Compare(t.ID, u.ID))
}
