package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

// query is what a viewer wants to see: the newest tasks, or the tasks with lower numbers than one.
type query struct {
	kind   string // "" means all
	state  state  // "" means all
	before store.ID
}

// state is the state of a task, as people see it.
type state string

const (
	waiting   state = "waiting"
	atWork    state = "at work"
	finished  state = "finished"
	failed    state = "failed" // for good, or until it is tried again
	suspended state = "suspended"
	cancelled state = "cancelled"
)

var states = []state{waiting, atWork, finished, failed, suspended, cancelled}

// stateOf returns the state of tasks of a kind at a stage.
func stateOf(kind, at string, status store.Status) state {
	switch status {
	case store.InProcessing:
		return atWork
	case store.Failed:
		return failed
	case store.Suspended:
		return suspended
	case store.Canceled:
		return cancelled
	case store.Normal:
		if at == last(kind) {
			return finished
		}
	}
	return waiting
}

// last returns the last stage of a kind, "" if the kind is unknown.
func last(kind string) string {
	k, ok := kinds[kind]
	if !ok {
		return ""
	}
	stages := k.Chain.Stages()
	return stages[len(stages)-1]
}

// parse reads a query from that of a URL.
func parse(values url.Values) (q query, err error) {
	q.kind, q.state = values.Get("kind"), state(values.Get("state"))
	if _, ok := kinds[q.kind]; !ok && q.kind != "" {
		return q, fmt.Errorf("%w: there is no kind %q", errAsked, q.kind)
	}
	if q.state != "" && !slices.Contains(states, q.state) {
		return q, fmt.Errorf("%w: there is no state %q", errAsked, q.state)
	}
	if text := values.Get("before"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return q, fmt.Errorf("%w: %q is not the number of a task", errAsked, text)
		}
		q.before = store.ID(n)
	}
	return q, nil
}

// page is how many tasks a view has at most. Of those at work, a view of all states shows at most so many at its top.
const (
	page = 50
	top  = page / 2
)

// selections returns the selections that together have the tasks of the query.
func (q query) selections() (all []store.Selection) {
	one := store.Selection{Kind: q.kind, Before: q.before, Newest: true, Limit: page + 1}
	with := func(status store.Status, running bool) {
		s := one
		s.Status, s.Running = status, running
		all = append(all, s)
	}
	switch q.state {
	case "":
		if q.before == 0 {
			with(store.InProcessing, false)
			all[0].Limit = top
		}
		all = append(all, one)
	case waiting:
		with(store.Normal, true)
		with(store.Resumed, true)
	case finished:
		one.Status, one.Ended = store.Normal, true
		all = append(all, one)
	default:
		with(map[state]store.Status{
			atWork: store.InProcessing, failed: store.Failed, suspended: store.Suspended, cancelled: store.Canceled,
		}[q.state], false)
	}
	return all
}

// view is what a viewer gets, in JSON.
type view struct {
	Kinds []kindView `json:"kinds"`
	Tasks []row      `json:"tasks"`
	More  bool       `json:"more"` // there are older tasks
}

type kindView struct {
	Name   string        `json:"name"`
	Stages []string      `json:"stages"`
	Paused bool          `json:"paused"`
	Counts map[state]int `json:"counts"`
}

// row is a task.
type row struct {
	ID      store.ID  `json:"id"`
	Kind    string    `json:"kind"`
	Stage   string    `json:"stage"`
	State   state     `json:"state"`
	Wanted  string    `json:"wanted,omitempty"` // the pending request to the worker
	Done    int       `json:"done,omitempty"`   // steps of the stage that is worked on,
	Of      int       `json:"of,omitempty"`     // of so many
	Attempt int       `json:"attempt,omitempty"`
	Failure string    `json:"failure,omitempty"` // its first line
	Due     time.Time `json:"due,omitzero"`      // of a task that waits
	Changed time.Time `json:"changed"`
	Can     []string  `json:"can"` // the possible requests
}

func rowOf(t store.Task) row {
	x := row{
		ID: t.ID, Kind: t.Kind, Stage: t.Stage, State: stateOf(t.Kind, t.Stage, t.Status),
		Attempt: t.Attempt, Changed: t.Changed, Can: []string{},
	}
	first, _, _ := bytes.Cut([]byte(t.Failure), []byte("\n"))
	x.Failure = string(first)
	_, _ = fmt.Sscanf(string(t.Progress), "%d of %d", &x.Done, &x.Of)
	switch t.Wanted {
	case store.Suspended:
		x.Wanted = "suspend"
	case store.Canceled:
		x.Wanted = "cancel"
	}
	switch x.State {
	case waiting, atWork:
		x.Can = []string{"suspend", "cancel"}
	case suspended:
		x.Can = []string{"resume", "cancel"}
	case failed:
		x.Can = []string{"retry", "cancel"}
	}
	if x.State == waiting || x.State == failed {
		x.Due = t.Due
	}
	return x
}

const (
	fresh = 500 * time.Millisecond // how long a view serves further viewers
	stale = 10 * time.Second       // after which it is forgotten
)

// board asks the store for all viewers: if several want to see the same within a moment, it asks once. Any goroutine.
type board struct {
	engine *stage.Engine

	mu    sync.Mutex
	views map[query]*seen
}

// seen is a view that was looked at.
type seen struct {
	wanted time.Time // when a viewer has asked for it. Under the board's mu.

	mu   sync.Mutex // held while the store is asked
	at   time.Time
	json []byte
}

// look returns the JSON of a view, which ends with a line feed. The caller does not change it.
func (b *board) look(ctx context.Context, q query) ([]byte, error) {
	s := b.seen(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.at) < fresh {
		return s.json, nil
	}
	v, err := b.view(ctx, q)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		return nil, err
	}
	s.at, s.json = now, out.Bytes()
	return s.json, nil
}

// seen returns what is known of a view, and forgets views that no viewer wants any more.
func (b *board) seen(q query) *seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for q, s := range b.views {
		if now.Sub(s.wanted) > stale {
			delete(b.views, q)
		}
	}
	if b.views == nil {
		b.views = map[query]*seen{}
	}
	s := b.views[q]
	if s == nil {
		s = &seen{}
		b.views[q] = s
	}
	s.wanted = now
	return s
}

// view asks the store.
func (b *board) view(ctx context.Context, q query) (v view, err error) {
	counts, err := b.engine.Store().Counts(ctx)
	if err != nil {
		return v, err
	}
	if v.Kinds, err = b.kinds(ctx, counts); err != nil {
		return v, err
	}
	var tasks []store.Task
	for _, s := range q.selections() {
		if s.Limit = min(s.Limit, has(counts, s)); s.Limit == 0 {
			continue
		}
		some, err := b.engine.Store().List(ctx, s)
		if err != nil {
			return v, err
		}
		tasks = append(tasks, some...)
	}
	slices.SortStableFunc(tasks, func(a, b store.Task) int { return cmp.Compare(b.ID, a.ID) })
	tasks = slices.CompactFunc(tasks, func(a, b store.Task) bool { return a.ID == b.ID })
	if q.before == 0 { // a worker takes the oldest, which would be on the last page
		slices.SortStableFunc(tasks, func(a, b store.Task) int { return cmp.Compare(rank(a), rank(b)) })
	}
	v.More = len(tasks) > page
	v.Tasks = []row{}
	for _, t := range tasks[:min(page, len(tasks))] {
		v.Tasks = append(v.Tasks, rowOf(t))
	}
	return v, nil
}

// rank is 0 for tasks at work, and 1 for others.
func rank(t store.Task) int {
	if t.Status == store.InProcessing {
		return 0
	}
	return 1
}

// has returns how many tasks a selection has, of any number. The store stops when it has found them: for a few that have finished
// it would search all tasks of their kind.
func has(counts []store.Count, s store.Selection) (n int) {
	for _, c := range counts {
		if (s.Kind == "" || s.Kind == c.Kind) && (s.Stage == "" || s.Stage == c.Stage) && (s.Status == "" || s.Status == c.Status) &&
			(!s.Running || stateOf(c.Kind, c.Stage, c.Status) == waiting) &&
			(!s.Ended || stateOf(c.Kind, c.Stage, c.Status) == finished) {
			n += c.N
		}
	}
	return n
}

// kinds returns the kinds that this program knows.
func (b *board) kinds(ctx context.Context, counts []store.Count) (all []kindView, err error) {
	paused, err := b.engine.Store().Paused(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		k := kindView{Name: name, Paused: slices.Contains(paused, name), Counts: map[state]int{}}
		k.Stages = kinds[name].Chain.Stages()
		for _, c := range counts {
			if c.Kind == name {
				k.Counts[stateOf(c.Kind, c.Stage, c.Status)] += c.N
			}
		}
		all = append(all, k)
	}
	return all, nil
}
