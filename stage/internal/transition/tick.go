package transition

import (
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// Tick returns what becomes of the record of a periodic task, which is the zero Time if there is none, and reports
// whether the tasks of the tick are enqueued. Records go forward, but one that is ahead of the clock may go back: the
// clock was ahead once.
func Tick(record time.Time, t store.Tick, now time.Time) (became time.Time, runs bool) {
	switch {
	case record.IsZero():
		return now, false
	case !record.Equal(t.Last), t.Next.After(now), !t.Next.After(record) && !record.After(now):
		return record, false
	}
	return t.Next.Round(0).UTC(), true
}
