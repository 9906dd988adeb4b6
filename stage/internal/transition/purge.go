package transition

import (
	"cmp"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// Purged reports whether a Purge of tasks with that status, which ended that long ago, may delete the task.
func Purged(t *store.Task, s store.Status, age time.Duration, now time.Time) bool {
	return t.Ended() && t.Status == s && !t.Changed.After(now.Add(-age))
}

// EndOrder compares ended tasks by when they are purged: by the times of their ends, then by their numbers.
func EndOrder(t, u *store.Task) int {
	return cmp.Or(t.Changed.Compare(u.Changed), cmp.Compare(t.ID, u.ID))
}
