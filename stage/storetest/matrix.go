package storetest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// conditions are all conditions of a task that a store distinguishes.
var conditions = []struct {
	name string
	make func(f *fixture, kind string) store.Task
}{
	{"new", func(f *fixture, kind string) store.Task { return f.get(f.enqueue(kind)) }},
	{"claimed", func(f *fixture, kind string) store.Task { return f.claimed(kind) }},
	{"claimed, to be suspended", func(f *fixture, kind string) store.Task {
		return f.asked(f.claimed(kind), f.suspend)
	}},
	{"claimed, to be cancelled", func(f *fixture, kind string) store.Task {
		return f.asked(f.claimed(kind), f.cancel)
	}},
	{"its lease has ended", func(f *fixture, kind string) store.Task {
		t := f.claimed(kind)
		f.advance(length)
		return t
	}},
	{"ended, to be suspended", func(f *fixture, kind string) store.Task {
		t := f.asked(f.claimed(kind), f.suspend)
		f.advance(length)
		return t
	}},
	{"ended, to be cancelled", func(f *fixture, kind string) store.Task {
		t := f.claimed(kind)
		f.advance(length)
		return f.asked(t, f.cancel)
	}},
	{"between two stages", func(f *fixture, kind string) store.Task {
		t := f.claimed(kind)
		f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
		return f.get(t.ID)
	}},
	{"in the next stage", func(f *fixture, kind string) store.Task {
		t := f.claimed(kind)
		f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
		t, err := f.a.Enter(f.ctx, t.Lease(), "ENDING", 0)
		f.NoError(err)
		return t
	}},
	{"between, to be suspended", func(f *fixture, kind string) store.Task {
		t := f.claimed(kind)
		f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
		return f.asked(t, f.suspend)
	}},
	{"interrupted", func(f *fixture, kind string) store.Task {
		return f.returned(f.claimed(kind), store.Return{Stage: created, Status: store.Normal, Runs: true})
	}},
	{"interrupted, rests", func(f *fixture, kind string) store.Task {
		return f.returned(f.claimed(kind), store.Return{Stage: created, Status: store.Normal, Runs: true, After: time.Hour})
	}},
	{"suspended", func(f *fixture, kind string) store.Task { return f.asked(f.get(f.enqueue(kind)), f.suspend) }},
	{"suspended at work", func(f *fixture, kind string) store.Task {
		r := failed
		r.Status = store.Normal
		return f.returned(f.asked(f.claimedAgain(kind), f.suspend), r)
	}},
	{"resumed", func(f *fixture, kind string) store.Task {
		return f.asked(f.asked(f.get(f.enqueue(kind)), f.suspend), f.resume)
	}},
	{"failed", func(f *fixture, kind string) store.Task { return f.returned(f.claimed(kind), failed) }},
	{"failed, rests", func(f *fixture, kind string) store.Task {
		return f.returned(f.claimed(kind), store.Return{Stage: created, Status: store.Failed, Attempt: 1, Runs: true, After: time.Hour})
	}},
	{"failed for good", func(f *fixture, kind string) store.Task {
		return f.returned(f.claimed(kind), store.Return{Stage: created, Status: store.Failed, Attempt: 1})
	}},
	{"cancelled", func(f *fixture, kind string) store.Task { return f.asked(f.get(f.enqueue(kind)), f.cancel) }},
	{"finished", func(f *fixture, kind string) store.Task {
		t := f.claimed(kind)
		f.NoError(f.a.Finish(f.ctx, t.Lease(), last, nil))
		return f.get(t.ID)
	}},
}

// asked makes a request, which has to make a difference.
func (f *fixture) asked(t store.Task, ask func(store.ID) (bool, error)) store.Task {
	f.t.Helper()
	f.yes(ask(t.ID))
	return f.get(t.ID)
}

func (f *fixture) returned(t store.Task, r store.Return) store.Task {
	f.t.Helper()
	_, err := f.a.Return(f.ctx, t.Lease(), r)
	f.NoError(err)
	return f.get(t.ID)
}

// requests has what each request makes of each condition: "no" if nothing changes, else what the task is then.
const requests = `
                          suspend                claim          cancel                resume                resume failed
new                       SUSPENDED never        IN_PROCESSING  CANCELLED never       no                    no
claimed                   IN_PROCESSING+SUSPENDED  no             IN_PROCESSING+CANCELLED  no                    no
claimed, to be suspended  no                     no             IN_PROCESSING+CANCELLED  IN_PROCESSING         IN_PROCESSING
claimed, to be cancelled  no                     no             no                    no                    no
its lease has ended       IN_PROCESSING+SUSPENDED  IN_PROCESSING  IN_PROCESSING+CANCELLED  no                    no
ended, to be suspended    no             IN_PROCESSING+SUSPENDED  IN_PROCESSING+CANCELLED  IN_PROCESSING         IN_PROCESSING
ended, to be cancelled    no             IN_PROCESSING+CANCELLED   no                    no                    no
between two stages        IN_PROCESSING+SUSPENDED  no             IN_PROCESSING+CANCELLED  no                    no
in the next stage         IN_PROCESSING+SUSPENDED  no             IN_PROCESSING+CANCELLED  no                    no
between, to be suspended  no                     no             IN_PROCESSING+CANCELLED  IN_PROCESSING         IN_PROCESSING
interrupted               SUSPENDED never        IN_PROCESSING  CANCELLED never       no                    no
interrupted, rests        SUSPENDED never        no             CANCELLED never       no                    no
suspended                 no                     no             CANCELLED never       RESUMED               RESUMED
suspended at work         no                     no             CANCELLED never       RESUMED               RESUMED
resumed                   SUSPENDED never        IN_PROCESSING  CANCELLED never       no                    no
failed                    SUSPENDED never        IN_PROCESSING  CANCELLED never       no                    RESUMED
failed, rests             SUSPENDED never        no             CANCELLED never       no                    RESUMED
failed for good           no                     no             CANCELLED never       no                    RESUMED
cancelled                 no                     no             no                    no                    no
finished                  no                     no             no                    no                    no
`

func testRequests(f *fixture) {
	operations := map[string]func(t store.Task) (bool, error){
		"suspend":       func(t store.Task) (bool, error) { return f.suspend(t.ID) },
		"resume":        func(t store.Task) (bool, error) { return f.resume(t.ID) },
		"resume failed": func(t store.Task) (bool, error) { return f.resumeFailed(t.ID) },
		"cancel":        func(t store.Task) (bool, error) { return f.cancel(t.ID) },
		"claim": func(t store.Task) (bool, error) {
			f.yes(f.a.SetPaused(f.ctx, t.Kind, true))
			f.Empty(f.claims(10, t.Kind), "while the kind is paused")
			f.same(t)
			f.yes(f.b.SetPaused(f.ctx, t.Kind, false))
			return len(f.claims(10, t.Kind)) == 1, nil
		},
	}
	f.fill(requests, func(t store.Task, operation string) string {
		f.advance(time.Millisecond)
		made, err := operations[operation](t)
		f.NoError(err)
		if made {
			f.Greater(f.get(t.ID).Changed, t.Changed, "%s: %s", t.Kind, operation)
			if attempts := t.Attempt; strings.HasPrefix(operation, "resume") {
				if t.Status == store.Failed { // it begins anew
					attempts = 0
				}
				f.Equal(attempts, f.get(t.ID).Attempt, "%s: %s", t.Kind, operation)
			}
			return f.brief(t.ID)
		}
		return "no"
	})
}

// leases has what the calls of the holder of the latest lease make of each condition: lost, suspended and cancelled are
// errors; again is not an error, and commit is not called. With these nothing changes. Else it is what the task is
// then. end is Finish without a commit, which stores may do otherwise.
const leases = `
                          enter          finish         finish last   end            return           heartbeat
new                       lost           lost           lost          lost           lost             lost
claimed                   IN_PROCESSING  IN_PROCESSING  NORMAL never  IN_PROCESSING  RESUMED          IN_PROCESSING
claimed, to be suspended  suspended      suspended      suspended     suspended      SUSPENDED never  IN_PROCESSING+SUSPENDED
claimed, to be cancelled  cancelled      cancelled      cancelled     cancelled      CANCELLED never  IN_PROCESSING+CANCELLED
its lease has ended       lost           lost           lost          lost           lost             lost
ended, to be suspended    lost           lost           lost          lost           lost             lost
ended, to be cancelled    lost           lost           lost          lost           lost             lost
between two stages        IN_PROCESSING  again          lost          again          RESUMED          IN_PROCESSING
in the next stage         IN_PROCESSING  lost           lost          lost           RESUMED          IN_PROCESSING
between, to be suspended  suspended      again          suspended     again          SUSPENDED never  IN_PROCESSING+SUSPENDED
interrupted               lost           lost           lost          lost           lost             lost
interrupted, rests        lost           lost           lost          lost           lost             lost
suspended                 lost           lost           lost          lost           lost             lost
suspended at work         lost           lost           lost          lost           lost             lost
resumed                   lost           lost           lost          lost           lost             lost
failed                    lost           lost           lost          lost           lost             lost
failed, rests             lost           lost           lost          lost           lost             lost
failed for good           lost           lost           lost          lost           lost             lost
cancelled                 lost           lost           lost          lost           lost             lost
finished                  lost           lost           again         lost           lost             lost
`

func testLeases(f *fixture) {
	called := false
	commit := func(context.Context, store.Tx) error {
		called = true
		return nil
	}
	operations := map[string]func(l store.Lease) error{
		"enter": func(l store.Lease) error {
			t, err := f.b.Enter(f.ctx, l, working, 3)
			if err == nil {
				f.Equal(3, t.Attempt)
				f.same(t)
			}
			return err
		},
		"finish":      func(l store.Lease) error { return f.b.Finish(f.ctx, l, passage, commit) },
		"finish last": func(l store.Lease) error { return f.b.Finish(f.ctx, l, last, commit) },
		"end":         func(l store.Lease) error { return f.b.Finish(f.ctx, l, passage, nil) },
		"return": func(l store.Lease) error {
			return failure(f.b.Return(f.ctx, l, store.Return{Stage: created, Status: store.Resumed, Runs: true}))
		},
		"heartbeat": func(l store.Lease) error {
			at := "NOWHERE"
			if t, err := f.b.Get(f.ctx, l.Task); err == nil {
				at = t.Stage
			}
			b := f.beat(l, at, "some")
			if errors.Is(b, store.ErrLeaseLost) {
				return b
			}
			now := f.get(l.Task)
			f.Equal(transition.Wanted(now.Wanted), b)
			f.Equal("some", string(now.Progress))
			return nil
		},
	}
	f.fill(leases, func(t store.Task, operation string) string {
		do := operations[operation]
		for _, token := range []int64{0, t.Token - 1, t.Token + 1, -t.Token} {
			if token != t.Token {
				f.ErrorIs(do(store.Lease{Task: t.ID, Token: token}), store.ErrLeaseLost)
			}
		}
		f.same(t)
		called = false
		err := do(t.Lease())
		switch {
		case err != nil:
			f.False(called)
			return outcome(err)
		case strings.HasPrefix(operation, "finish") && !called, strings.HasPrefix(operation, "end") && t.Stage == f.get(t.ID).Stage:
			return "again"
		}
		return f.brief(t.ID)
	})
}

// outcome returns an error in a word.
func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	case errors.Is(err, store.ErrLeaseLost):
		return "lost"
	case errors.Is(err, store.ErrSuspended):
		return "suspended"
	case errors.Is(err, store.ErrCanceled):
		return "cancelled"
	}
	return "refused"
}

// brief returns what the task is now.
func (f *fixture) brief(id store.ID) string {
	f.t.Helper()
	t := f.get(id)
	text := string(t.Status)
	if t.Wanted != "" {
		text += "+" + string(t.Wanted)
	}
	if t.Due.IsZero() {
		text += " never"
	}
	return text
}

// changes matches the cells of a table that say that the task has changed.
var changes = regexp.MustCompile(`^[A-Z]`)

// fill compares each cell of a table with what do returns for a new task.
func (f *fixture) fill(want string, do func(t store.Task, column string) string) {
	columns := regexp.MustCompile(`\s{2,}`)
	lines := strings.Split(strings.TrimRight(strings.TrimLeft(want, "\n"), "\n"), "\n")
	head := columns.Split(strings.TrimSpace(lines[0]), -1)
	f.Len(lines, len(conditions)+1, "each condition")
	for i, row := range conditions {
		cells := columns.Split(lines[i+1], -1)
		f.Equal(row.name, cells[0])
		f.Len(cells, len(head)+1, row.name)
		for j, column := range head {
			name := fmt.Sprintf("%s: %s", row.name, column)
			t := row.make(f, name)
			got := do(t, column)
			f.Equal(cells[j+1], got, name)
			if !changes.MatchString(got) {
				f.Equal(plain(t), plain(f.get(t.ID)), name)
			}
		}
	}
}
