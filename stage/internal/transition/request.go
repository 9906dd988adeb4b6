package transition

import (
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// A Request is a rule for callers that hold no lease. It reports whether it has changed the task.
type Request func(t *store.Task, now time.Time) bool

// Suspend takes a task out of work that is due at some time: at once, or by a request to its holder.
func Suspend(t *store.Task, now time.Time) bool {
	if !t.Runs() || t.Wanted != "" {
		return false
	}
	stop(t, store.Suspended, now)
	return true
}

// Cancel ends a task that is neither finished nor cancelled: at once, or by a request to its holder. The request
// replaces one to suspend.
func Cancel(t *store.Task, now time.Time) bool {
	if t.Finished() || t.Status == store.Canceled || t.Wanted == store.Canceled {
		return false
	}
	stop(t, store.Canceled, now)
	return true
}

// stop gives the task the status, or has its holder asked for it.
func stop(t *store.Task, s store.Status, now time.Time) {
	if t.Status == store.InProcessing {
		t.Wanted = s
	} else {
		t.Status = s
		t.Due = time.Time{}
	}
	t.Changed = now
}

// Resume makes a suspended task due at once, or withdraws a request to suspend it. If failed, it does the same with a
// task in Error, whose attempts begin anew.
func Resume(failed bool) Request {
	return func(t *store.Task, now time.Time) bool {
		switch {
		case t.Wanted == store.Suspended:
			t.Wanted = ""
		case t.Status == store.Suspended:
			t.Status, t.Due = store.Resumed, now
		case t.Status == store.Failed && failed:
			t.Status, t.Due, t.Attempt = store.Resumed, now, 0
		default:
			return false
		}
		t.Changed = now
		return true
	}
}

// NotFound returns the error for a task that does not exist.
func NotFound(id store.ID) error { return fmt.Errorf("%w: %d", store.ErrNotFound, id) }

// Selected reports whether s selects the task. It ignores s.Limit.
func Selected(t *store.Task, s store.Selection) bool {
	return t.ID > s.After && (s.Before == 0 || t.ID < s.Before) &&
		(s.IDs == nil || slices.Contains(s.IDs, t.ID)) &&
		(s.Kind == "" || s.Kind == t.Kind) &&
		(s.Stage == "" || s.Stage == t.Stage) &&
		(s.Status == "" || s.Status == t.Status) &&
		(!s.Running || t.Runs()) &&
		(!s.Ended || t.Ended())
}

// Many is how many tasks are too many to read all of them for a page.
const Many = 10_000

// Narrow reports whether s asks for tasks that run, or for such as have ended, and no index of a status has fewer of them. At
// most one of the two is true.
func Narrow(s store.Selection) (running, ended bool) {
	running = s.Running && s.IDs == nil && s.Status != store.InProcessing && s.Status != store.Resumed // all of these run
	ended = s.Ended && s.IDs == nil && !running && s.Status != store.Canceled                          // all of these have ended
	return running, ended
}
