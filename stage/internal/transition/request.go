package transition

import (
	"cmp"
	"errors"
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

// Ask applies a request to a task, which is nil if it does not exist. Its error keeps the store from writing the task.
func Ask(t *store.Task, id store.ID, rule Request, now time.Time) error {
	switch {
	case t == nil:
		return NotFound(id)
	case !rule(t, now):
		return errUnchanged
	}
	return nil
}

var errUnchanged = errors.New("nothing has changed")

// Asked returns the results of a method of the store, given the error of a transaction with Ask.
func Asked(err error) (changed bool, _ error) {
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return err == nil, err
}

// NotFound returns the error for a task that does not exist.
func NotFound(id store.ID) error { return fmt.Errorf("%w: %d", store.ErrNotFound, id) }

// Only returns the task with that number, given the tasks that were found.
func Only(id store.ID, found []store.Task, err error) (store.Task, error) {
	if err == nil && len(found) == 0 {
		err = NotFound(id)
	}
	if err != nil {
		return store.Task{}, err
	}
	return found[0], nil
}

// Scanned makes a task that was read from a database the one that was written: times are in UTC, and no bytes are nil.
func Scanned(t *store.Task) {
	t.Due, t.Created, t.Changed = t.Due.UTC(), t.Created.UTC(), t.Changed.UTC()
	for _, data := range []*[]byte{&t.Data, &t.Progress} {
		if len(*data) == 0 {
			*data = nil
		}
	}
}

// Permanent wraps err as a store.ErrPermanent with the text of err. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

type permanent struct{ error }

func (p permanent) Unwrap() error        { return p.error }
func (p permanent) Is(target error) bool { return target == store.ErrPermanent }

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

// CountOrder compares counts by the order in which a store returns them.
func CountOrder(a, b store.Count) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Status, b.Status))
}

// Purged reports whether a Purge of tasks with that status, which ended that long ago, may delete the task.
func Purged(t *store.Task, s store.Status, age time.Duration, now time.Time) bool {
	return t.Ended() && t.Status == s && !t.Changed.After(now.Add(-age))
}

// EndOrder compares ended tasks by when they are purged: by the times of their ends, then by their numbers.
func EndOrder(t, u *store.Task) int {
	return cmp.Or(t.Changed.Compare(u.Changed), cmp.Compare(t.ID, u.ID))
}
