package transition

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/stage/store"
)

// latest is when a task is due at the latest: JSON and all databases have times until then.
var latest = time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC)

// At returns n.At as a time that all stores have: not before 1970, which is as good as now, and not after the year 9999. It
// asks for seconds, since comparisons of times that are very far overflow. The zero Time, which means none, stays.
func At(n store.NewTask) time.Time {
	switch seconds := n.At.Unix(); {
	case n.At.IsZero():
		return time.Time{}
	case seconds < 0:
		return time.Unix(0, 0).UTC()
	case seconds >= latest.Unix():
		return latest
	}
	return n.At.Round(0).UTC()
}

// New returns a new task without a number.
func New(n store.NewTask, now time.Time) store.Task {
	due := now.Add(max(0, n.After))
	if at := At(n); at.After(due) {
		due = at
	}
	return store.Task{Kind: n.Kind, Stage: n.Stage, Status: store.Normal, Data: n.Data, Due: due, Created: now, Changed: now}
}

// Due reports whether the task may be claimed: it is due, or the lease of its worker has ended.
func Due(t *store.Task, now time.Time) bool { return t.Runs() && !t.Due.After(now) }

// Fresh reports whether the task is new: it has never been claimed, and has not been resumed.
func Fresh(t *store.Task) bool { return t.Token == 0 && t.Status == store.Normal }

// Kinds returns the kinds of a claim in order, each once.
func Kinds(c store.Claim) []string {
	kinds := slices.Clone(c.Kinds)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Order compares tasks by when they are claimed: higher priorities of their kinds come first, then fresh ones come last, then
// the one that is due longer comes first, then the lower number.
func Order(t, u *store.Task, priorities map[string]int) int {
	return cmp.Or(
		cmp.Compare(priorities[u.Kind], priorities[t.Kind]),
		fresh(t)-fresh(u), t.Due.Compare(u.Due), cmp.Compare(t.ID, u.ID),
	)
}

func fresh(t *store.Task) int {
	if Fresh(t) {
		return 1
	}
	return 0
}

// MaxFailures is how many records of failures a store keeps for a task, and MaxFailure bounds Task.Failure, in bytes.
const (
	MaxFailures = 10
	MaxFailure  = 4096
)

// WorkerLost is the text of the record of an attempt whose worker was lost.
const WorkerLost = "stage: the worker was lost"

// Claim gives a due task to a worker. The token rises, so that all earlier leases are lost. A request that the lost
// worker has not obeyed stays. If that was an attempt, Claim returns the record of its failure, and failed is true.
func Claim(t *store.Task, c store.Claim, now time.Time) (f store.Failure, failed bool) {
	for _, s := range c.Shows {
		if s.Kind == t.Kind && s.Found == t.Stage && s.Lost == (t.Status == store.InProcessing) {
			f = store.Failure{Stage: t.Stage, Attempt: t.Attempt + s.Attempts, Time: now, Text: WorkerLost}
			failed = s.Lost && s.Attempts > 0
			t.Stage, t.Attempt = s.Stage, f.Attempt
			break
		}
	}
	t.Status = store.InProcessing
	t.Worker = c.Worker
	t.Token++
	t.Due = now.Add(c.Length)
	t.Changed = now
	return f, failed
}

// Holds reports whether l is the present lease of the task and has not ended. t is nil if there is no such task, here
// and below.
func Holds(t *store.Task, l store.Lease, now time.Time) bool {
	return t != nil && t.Status == store.InProcessing && t.Token == l.Token && t.Due.After(now)
}

// Wanted returns Task.Wanted as an error.
func Wanted(s store.Status) error {
	switch s {
	case store.Suspended:
		return store.ErrSuspended
	case store.Canceled:
		return store.ErrCanceled
	}
	return nil
}

// Enter shows the task at another stage.
func Enter(t *store.Task, l store.Lease, at string, attempt int, now time.Time) error {
	if !Holds(t, l, now) {
		return store.ErrLeaseLost
	}
	if err := Wanted(t.Wanted); err != nil {
		return err
	}
	t.Stage = at
	t.Attempt = attempt
	t.Changed = now
	return nil
}

// MayFinish reports whether the holder may make the passage p: then the store calls the commit, and after it Finish.
// again says that the holder has made this passage before, in a call whose answer was lost: nothing is left to do.
func MayFinish(t *store.Task, l store.Lease, p store.Passage, now time.Time) (again bool, err error) {
	held := Holds(t, l, now)
	switch {
	case p.Last && t != nil && t.Token == l.Token && t.Finished() && t.Stage == p.To:
		return true, nil // Finish has ended the lease
	case !held:
		return false, store.ErrLeaseLost
	case !p.Last && t.Stage == p.To:
		return true, nil
	case t.Wanted != "":
		return false, Wanted(t.Wanted)
	case t.Stage != p.From:
		return false, store.ErrLeaseLost // the task has moved, or the call is late
	}
	return false, nil
}

// Finish makes the passage p. The lease may have ended during the commit: the store's lock has kept others away.
func Finish(t *store.Task, p store.Passage, now time.Time) {
	t.Stage = p.To
	t.Attempt = 0
	t.Failure = ""
	t.Progress, t.ProgressStage = nil, ""
	t.Changed = now
	if p.Last {
		t.Status = store.Normal
		t.Due = time.Time{}
	}
}

// Return ends the lease and leaves the task as r says, unless a request waits. A task that has failed for good is not suspended:
// Resume would let it be tried again.
func Return(t *store.Task, l store.Lease, r store.Return, now time.Time) error {
	if !Holds(t, l, now) {
		return store.ErrLeaseLost
	}
	Note(t, r.Progress)
	t.Due = time.Time{}
	switch {
	case t.Wanted == store.Suspended && (r.Runs || r.Status != store.Failed):
		r.Status = store.Suspended
	case t.Wanted == store.Canceled:
		r.Status = store.Canceled
	case r.Runs:
		t.Due = now.Add(r.After)
	}
	t.Stage = r.Stage
	t.Status = r.Status
	t.Wanted = ""
	t.Attempt = r.Attempt
	t.Failure = legible(r.Failure)
	t.Changed = now
	return nil
}

// Failed returns the record of the failure with which r gives the task back, and reports whether there is one. The store asks
// before Return, and keeps the record if Return allows r. There is none if the attempt has one already, that of its lost worker.
func Failed(t *store.Task, r store.Return, now time.Time) (f store.Failure, ok bool) {
	if t == nil || r.Status != store.Failed || r.Attempt <= t.Attempt {
		return store.Failure{}, false
	}
	return store.Failure{Stage: t.Stage, Attempt: r.Attempt, Time: now, Text: legible(r.Failure)}, true
}

// Notes reports whether the task keeps p, which comes from its holder: a heartbeat may be late, and the task at another
// stage.
func Notes(t *store.Task, p store.Progress) bool {
	return t != nil && p.Stage != "" && p.Stage == t.Stage
}

// Note keeps p, if the task does. The bytes are p's own.
func Note(t *store.Task, p store.Progress) {
	if Notes(t, p) {
		t.Progress, t.ProgressStage = p.Data, p.Stage
	}
}

// Beat answers a heartbeat for one lease. When all leases of the heartbeat have their answers, the store makes the
// tasks whose leases are not lost due at the end of the new lease, and notes their progress. That does not count as a
// change of the task.
func Beat(t *store.Task, l store.Lease, now time.Time) error {
	if !Holds(t, l, now) {
		return store.ErrLeaseLost
	}
	return Wanted(t.Wanted)
}

// Renewed reports whether that answer to a heartbeat is one for a lease that was renewed.
func Renewed(answer error) bool {
	return !errors.Is(answer, store.ErrLeaseLost) && !errors.Is(answer, store.ErrUnavailable)
}

// legible makes s a text that every database can keep: valid UTF-8 without NUL, of at most MaxFailure bytes.
func legible(s string) string {
	const replacement = string(utf8.RuneError)
	s = s[:min(len(s), MaxFailure+utf8.UTFMax)] // s may be of any length; a rune that this cuts is cut off below
	s = strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
	if len(s) <= MaxFailure {
		return s
	}
	end := MaxFailure
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
