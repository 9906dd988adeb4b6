package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Each history has that many steps, and at most that many tasks: few, so that much happens to each.
const (
	steps = 500
	tasks = 12
)

// Random makes random calls of a store and of a simple model in memory, and fails t where their answers differ: one history
// for each seed from 0 to seeds-1. Run does so with one seed; call Random with more for a store that is fast.
func Random(t *testing.T, seeds int, open func(t *testing.T) Harness) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			h := &history{
				fixture: newFixture(t, open), r: rand.New(rand.NewPCG(seed, 0)), twin: newTwin(),
			}
			h.begin()
			for range steps {
				h.step()
			}
		})
	}
}

// history is a store and its twin. Their answers are compared as text, with times from base on.
type history struct {
	*fixture
	twin   *twin
	r      *rand.Rand
	base   time.Time
	ids    []store.ID
	leases []store.Lease // all that were ever given
	number int64         // of the latest claim
	log    []string
	err    error // the latest
}

// begin adds a task, whose Created is the time.
func (h *history) begin() {
	n := store.NewTask{Kind: "a", Stage: created}
	id := h.enqueued(n)
	h.base = h.get(id).Created
	h.twin.now, h.twin.ids = h.base, []store.ID{id}
	_, err := h.twin.Enqueue(h.ctx, n)
	h.NoError(err)
	h.ids = append(h.ids, id)
}

// step does one thing to both and compares what they answer, and all tasks then.
func (h *history) step() {
	name, do := h.operation()
	got := do(h.side(h.r.IntN(2)))
	want := do(h.twin)
	h.log = append(h.log, fmt.Sprintf("%s: %s", name, got))
	if got != want {
		h.fail("it answers\n\t%s\nbut the twin\n\t%s", got, want)
	}
	all, err := h.side(h.r.IntN(2)).List(h.ctx, store.Selection{})
	h.NoError(err)
	twins, _ := h.twin.List(h.ctx, store.Selection{})
	if got, want := h.texts(all), h.texts(twins); got != want {
		h.fail("then it has\n%s\nbut the twin\n%s", got, want)
	}
	counts, err := h.side(h.r.IntN(2)).Counts(h.ctx)
	h.NoError(err)
	if twins, _ := h.twin.Counts(h.ctx); !slices.Equal(counts, twins) {
		h.fail("then it counts\n%v\nbut the twin\n%v", counts, twins)
	}
	if name, do := h.failures(); do(h.side(h.r.IntN(2))) != do(h.twin) {
		h.fail("%s answers\n\t%s\nbut of the twin\n\t%s", name, do(h.a), do(h.twin))
	}
	for _, t := range all {
		h.leases = append(h.leases, t.Lease())
	}
	slices.SortFunc(h.leases, func(l, m store.Lease) int { return int((l.Task-m.Task)*1000) + int(l.Token-m.Token) })
	h.leases = slices.Compact(h.leases)
}

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	h.Fail("it differs from its twin", "%s\n\nThe last operations:\n%s\n\nThe last error: %v", fmt.Sprintf(format, args...),
		strings.Join(h.log[max(0, len(h.log)-15):], "\n"), h.err)
}

// outcome is outcome, and notes the error.
func (h *history) outcome(err error) string {
	if err != nil {
		h.err = err
	}
	return outcome(err)
}

// operation draws what to do next. The function is called for the store and then for the twin, and returns the answer.
func (h *history) operation() (name string, do func(s store.Store) string) {
	switch n := h.r.IntN(100); {
	case n < 6 && len(h.twin.tasks) < tasks:
		return h.enqueue()
	case n < 20:
		return h.claim()
	case n < 30:
		return h.enter()
	case n < 50:
		return h.finish()
	case n < 60:
		return h.giveBack()
	case n < 67:
		return h.heartbeat()
	case n < 75:
		return h.request("Suspend", store.Store.Suspend)
	case n < 85:
		failed := h.r.IntN(2) == 0
		return h.request(fmt.Sprintf("Resume failed=%v", failed), func(s store.Store, ctx context.Context, id store.ID) (bool, error) {
			return s.Resume(ctx, id, failed)
		})
	case n < 87:
		return h.request("Cancel", store.Store.Cancel)
	case n < 89:
		return h.list()
	case n < 91:
		return h.claimed()
	case n < 93:
		return h.tick()
	case n < 96:
		return h.pause()
	case n < 97:
		return h.purge()
	}
	d := time.Duration(h.r.IntN(4000)) * time.Millisecond
	return fmt.Sprintf("Advance %v", d), func(s store.Store) string {
		if s == h.twin {
			h.twin.now = h.twin.now.Add(d)
		} else {
			h.advance(d)
		}
		return "ok"
	}
}

func (h *history) enqueue() (string, func(store.Store) string) {
	var all []store.NewTask
	for range 1 + h.r.IntN(2) {
		n := store.NewTask{Kind: h.one("a", "b", "c"), Stage: created, Data: []byte(h.one("", "one", "two"))}
		if h.r.IntN(4) == 0 {
			n.After = h.time()
		}
		if h.r.IntN(4) == 0 {
			n.At = h.twin.now.Add(h.time())
		}
		if h.r.IntN(2) == 0 {
			n.Key, n.Within = h.one("x", "y"), h.time()
		}
		all = append(all, n)
	}
	return fmt.Sprintf("Enqueue %+v", all), func(s store.Store) string {
		ids, err := s.Enqueue(h.ctx, all...)
		if s != h.twin {
			h.Len(ids, len(all))
			for i, id := range ids {
				if all[i].Key == "" || !slices.Contains(h.ids, id) {
					h.Greater(id, slices.Max(h.ids), "they rise, and are never given twice")
					h.ids = append(h.ids, id)
				}
			}
			h.twin.ids = ids
		}
		return fmt.Sprintf("%d %s", ids, h.outcome(err))
	}
}

// tick has ticks of names that are there and of one that is not, with the right record or another one.
func (h *history) tick() (string, func(store.Store) string) {
	var ticks []store.Tick
	for _, name := range []string{"x", "y", "z"}[h.r.IntN(3):] {
		t := store.Tick{Name: name, Last: h.twin.ticks[name]}
		t.Next = t.Last.Add(h.time())
		if h.r.IntN(5) == 0 {
			t.Last = h.base
		}
		if h.r.IntN(3) == 0 { // mostly with a key, so that there are not too many tasks
			t.Tasks = []store.NewTask{{Kind: "c", Stage: created, Key: "tick", Data: []byte(name)}}
		}
		ticks = append(ticks, t)
	}
	return fmt.Sprintf("Tick %+v", ticks), func(s store.Store) string {
		if s != h.twin {
			before, err := s.List(h.ctx, store.Selection{})
			h.NoError(err)
			defer func() {
				after, err := s.List(h.ctx, store.Selection{})
				h.NoError(err)
				h.twin.ids = nil
				for _, t := range after[len(before):] {
					h.ids, h.twin.ids = append(h.ids, t.ID), append(h.twin.ids, t.ID)
				}
				h.twin.ids = append(h.twin.ids, make([]store.ID, len(ticks))...)
			}()
		}
		now, records, err := s.Tick(h.ctx, ticks...)
		text := now.Sub(h.base).String()
		for _, last := range records {
			text += " " + last.Sub(h.base).String()
		}
		return text + " " + h.outcome(err)
	}
}

// others are kinds without tasks: so many that a store need not ask for each of them.
var others = func() (all []string) {
	for i := range 120 {
		all = append(all, fmt.Sprint("none ", i))
	}
	return all
}()

func (h *history) claim() (string, func(store.Store) string) {
	var kinds []string
	for range h.r.IntN(4) {
		kinds = append(kinds, h.one("a", "b", "c"))
	}
	if h.r.IntN(2) == 0 {
		kinds = append(kinds, others...)
	}
	h.number++
	var most, priorities map[string]int
	if h.r.IntN(3) == 0 {
		most = map[string]int{"a": h.r.IntN(3), "b": h.r.IntN(3)}
	}
	if h.r.IntN(2) == 0 {
		priorities = map[string]int{"a": h.r.IntN(3) - 1, "b": h.r.IntN(3) - 1}
	}
	c := store.Claim{
		Ticket: store.Ticket{Engine: int64(h.r.IntN(2)), Number: h.number},
		Worker: h.one("ann", "ben"), Kinds: kinds, Limit: h.r.IntN(5), Most: most, Priorities: priorities,
		Length: h.time(),
	}
	for _, kind := range []string{"a", "b", "c"} {
		for i, found := range []string{created, "S0", "S1", "S2", "T0", "T1"} {
			for _, lost := range []bool{false, true} {
				if h.r.IntN(4) > 0 {
					c.Shows = append(c.Shows, store.Show{
						Kind: kind, Found: found, Lost: lost, Stage: fmt.Sprintf("S%d", i%3), Attempts: h.r.IntN(3),
					})
				}
			}
		}
	}
	return fmt.Sprintf("Claim %+v", c), func(s store.Store) string {
		claimed, err := s.Claim(h.ctx, c)
		if s != h.twin {
			h.twin.tokens = map[store.ID]int64{}
			for _, t := range claimed {
				h.twin.tokens[t.ID] = t.Token
			}
		}
		return fmt.Sprintf("%s\n\t%s", strings.ReplaceAll(h.texts(claimed), "\n", "\n\t"), h.outcome(err))
	}
}

func (h *history) claimed() (string, func(store.Store) string) {
	t := store.Ticket{Engine: int64(h.r.IntN(2)), Number: h.number - int64(h.r.IntN(5))}
	return fmt.Sprintf("Claimed %v", t), func(s store.Store) string {
		held, err := s.Claimed(h.ctx, t)
		return fmt.Sprintf("%s %s", h.texts(held), h.outcome(err))
	}
}

func (h *history) enter() (string, func(store.Store) string) {
	l, at, attempt := h.lease(), h.one("S0", "S1", "S2"), h.r.IntN(3)
	return fmt.Sprintf("Enter %v %s %d", l, at, attempt), func(s store.Store) string {
		t, err := s.Enter(h.ctx, l, at, attempt)
		if err != nil {
			h.Zero(t)
			return h.outcome(err)
		}
		return h.text(t)
	}
}

func (h *history) finish() (string, func(store.Store) string) {
	l := h.lease()
	p := store.Passage{From: h.one("S0", "S1", "S2"), To: h.one("T0", "T1"), Last: h.r.IntN(4) == 0}
	if h.r.IntN(4) > 0 {
		p.From = h.twin.tasks[l.Task].Stage
	}
	refused := errors.New("refused")
	how := h.one("no commit", "nothing", "data", "none", "an error")
	return fmt.Sprintf("Finish %v %v, %s", l, p, how), func(s store.Store) string {
		called := false
		commit := func(_ context.Context, tx store.Tx) error {
			called = true
			switch how {
			case "data":
				tx.SetData([]byte("of " + p.From))
			case "none":
				tx.SetData([]byte{})
			case "an error":
				tx.SetData([]byte("lost"))
				return refused
			}
			return nil
		}
		if how == "no commit" {
			commit = nil
		}
		err := s.Finish(h.ctx, l, p, commit)
		return fmt.Sprintf("called=%v %s %v", called, h.outcome(err), err == refused)
	}
}

func (h *history) giveBack() (string, func(store.Store) string) {
	r := store.Return{
		Stage: h.one("T0", "T1"), Status: store.Status(h.one("NORMAL", "ERROR", "RESUMED", "SUSPENDED", "CANCELLED")),
		Attempt: h.r.IntN(3), Failure: h.one("", "no luck", "no more"), Runs: h.r.IntN(4) > 0, After: h.time(),
	}
	switch r.Status {
	case store.Resumed:
		r.Runs = true
	case store.Suspended, store.Canceled:
		r.Runs = false
	}
	l := h.lease()
	r.Progress = h.progress(l)
	return fmt.Sprintf("Return %v %+v", l, r), func(s store.Store) string {
		status, err := s.Return(h.ctx, l, r)
		return fmt.Sprintf("%s %s", status, h.outcome(err))
	}
}

func (h *history) heartbeat() (string, func(store.Store) string) {
	var all []store.Renewal
	for range h.r.IntN(5) {
		r := store.Renewal{Lease: h.lease()}
		if !slices.ContainsFunc(all, func(other store.Renewal) bool { return other.Lease == r.Lease }) {
			r.Progress = h.progress(r.Lease)
		}
		all = append(all, r)
	}
	d := h.time()
	return fmt.Sprintf("Heartbeat %v for %v", all, d), func(s store.Store) string {
		beats, err := s.Heartbeat(h.ctx, all, d)
		return fmt.Sprintf("%v %s", beats, h.outcome(err))
	}
}

// failures asks for the failures of a task.
func (h *history) failures() (string, func(store.Store) string) {
	id := h.ids[h.r.IntN(len(h.ids))]
	return fmt.Sprintf("Failures %d", id), func(s store.Store) string {
		all, err := s.Failures(h.ctx, id)
		text := h.outcome(err)
		for _, f := range all {
			text += fmt.Sprintf("\n\tat %s, attempt %d, %v: %q", f.Stage, f.Attempt, f.Time.Sub(h.base), f.Text)
		}
		return text
	}
}

// progress is mostly of the stage at which the task is, and often none.
func (h *history) progress(l store.Lease) store.Progress {
	switch h.r.IntN(6) {
	case 0, 1, 2:
		return store.Progress{Stage: h.twin.tasks[l.Task].Stage, Data: []byte(h.one("", "half", "all"))}
	case 3:
		return store.Progress{Stage: h.one("S0", "S1", "S2"), Data: []byte("some")}
	}
	return store.Progress{}
}

type request func(s store.Store, ctx context.Context, id store.ID) (bool, error)

func (h *history) request(name string, ask request) (string, func(store.Store) string) {
	id := h.ids[h.r.IntN(len(h.ids))]
	if h.r.IntN(20) == 0 {
		id += 1000
	}
	return fmt.Sprintf("%s %d", name, id), func(s store.Store) string {
		made, err := ask(s, h.ctx, id)
		return fmt.Sprintf("%v %s", made, h.outcome(err))
	}
}

// pause ends a pause more often than it begins one, so that most tasks can be claimed.
func (h *history) pause() (string, func(store.Store) string) {
	kind, paused := h.one("a", "b", "c"), h.r.IntN(3) == 0
	return fmt.Sprintf("SetPaused %s %v", kind, paused), func(s store.Store) string {
		changed, err := s.SetPaused(h.ctx, kind, paused)
		kinds, failure := s.Paused(h.ctx)
		h.NoError(failure)
		return fmt.Sprintf("%v %s %v", changed, h.outcome(err), kinds)
	}
}

func (h *history) list() (string, func(store.Store) string) {
	f := store.Selection{
		Kind: h.one("", "a", "b"), Stage: h.one("", "", created, "S0", "T0"),
		Status: store.Status(h.one("", "", "NORMAL", "ERROR", "IN_PROCESSING", "SUSPENDED", "RESUMED", "CANCELLED")),
		Limit:  h.r.IntN(4), Running: h.r.IntN(3) == 0, Ended: h.r.IntN(4) == 0, Newest: h.r.IntN(2) == 0,
	}
	if h.r.IntN(2) == 0 {
		f.After = h.ids[h.r.IntN(len(h.ids))]
	}
	if h.r.IntN(2) == 0 {
		f.Before = h.ids[h.r.IntN(len(h.ids))]
	}
	if h.r.IntN(3) == 0 {
		f.IDs = []store.ID{}
		for range h.r.IntN(10) {
			f.IDs = append(f.IDs, h.ids[h.r.IntN(len(h.ids))]+store.ID(h.r.IntN(2)))
		}
	}
	return fmt.Sprintf("List %+v", f), func(s store.Store) string {
		found, err := s.List(h.ctx, f)
		return fmt.Sprintf("%s %s", h.texts(found), h.outcome(err))
	}
}

func (h *history) purge() (string, func(store.Store) string) {
	status := store.Status(h.one("NORMAL", "CANCELLED", "ERROR", "SUSPENDED", "IN_PROCESSING"))
	age, limit := h.time(), h.r.IntN(3)
	return fmt.Sprint("Purge ", status, " ", age, " ", limit), func(s store.Store) string {
		n, err := s.Purge(h.ctx, status, age, limit)
		return fmt.Sprintf("%d %s", n, h.outcome(err))
	}
}

func (h *history) one(of ...string) string { return of[h.r.IntN(len(of))] }

// time is short compared with the times that Advance draws, or long.
func (h *history) time() time.Duration {
	return time.Duration([]int{0, h.r.IntN(2000), 10_000}[h.r.IntN(3)]) * time.Millisecond
}

// lease returns mostly one that has not ended, if there is any; else one that has, or that was never given.
func (h *history) lease() store.Lease {
	var live []store.Lease
	for _, l := range h.leases {
		if transition.Holds(h.twin.find(l.Task), l, h.twin.now) {
			live = append(live, l)
		}
	}
	if len(live) > 0 && h.r.IntN(5) > 0 {
		return live[h.r.IntN(len(live))]
	}
	if len(h.leases) == 0 {
		return store.Lease{Task: h.ids[0]}
	}
	l := h.leases[h.r.IntN(len(h.leases))]
	if h.r.IntN(10) == 0 {
		l.Token++
	}
	return l
}

func (h *history) texts(tasks []store.Task) string {
	var lines []string
	for _, t := range tasks {
		lines = append(lines, h.text(t))
	}
	return strings.Join(lines, "\n")
}

// text is all of a task in a line.
func (h *history) text(t store.Task) string {
	since := func(at time.Time) string {
		if at.IsZero() {
			return "never"
		}
		return at.Sub(h.base).String()
	}
	return fmt.Sprintf("%d %s at %s, %s%s, data %q, attempt %d %q, progress %q of %q, due %s, %s with token %d, created %s, changed %s",
		t.ID, t.Kind, t.Stage, t.Status, t.Wanted, t.Data, t.Attempt, t.Failure, t.Progress, t.ProgressStage, since(t.Due), t.Worker, t.Token,
		since(t.Created), since(t.Changed))
}
