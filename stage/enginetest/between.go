package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// tape has what a second reader sees of each task after each transition, if that is something else than before.
// Heartbeats are no transitions.
type tape struct {
	mu   sync.Mutex // over the transition and the look
	seen map[stage.ID][]string
}

// tape returns a gate that records.
func (w *world) tape() *gate {
	g := w.gate()
	g.tape = &tape{seen: map[stage.ID][]string{}}
	return g
}

// look records what is seen of a task. Under mu.
func (p *tape) look(w *world, id stage.ID) {
	t, err := w.other.Get(w.ctx, id)
	if err != nil {
		return
	}
	now := state(t)
	if t.Status == stage.Error {
		now += ": " + t.Failure
	}
	if seen := p.seen[id]; len(seen) == 0 || seen[len(seen)-1] != now {
		p.seen[id] = append(seen, now)
		w.note("%s: %s", t.Data, now)
	}
}

// history returns all that was seen of a task.
func (g *gate) history(id stage.ID) []string {
	g.tape.mu.Lock()
	defer g.tape.mu.Unlock()
	return slices.Clone(g.tape.seen[id])
}

// The operations of a Store that a gate knows.
const (
	enqueue   = "Enqueue"
	claim     = "Claim"
	claimed   = "Claimed"
	enter     = "Enter"
	finish    = "Finish"
	giveBack  = "Return"
	heartbeat = "Heartbeat"
	suspend   = "Suspend"
	resume    = "Resume"
	cancel    = "Cancel"
)

// gate is a Store that can delay an operation, replace its answer before or after it is done, and record what it does. Its
// fields are set before it is used.
type gate struct {
	stage.Store
	w      *world
	before func(ctx context.Context, op string) error // nil: go on
	after  func(op string, err error) error           // what is answered instead of err
	spoil  func() error                               // makes a transaction fail when its commit has been called
	deaf   bool                                       // operations ignore the end of their context
	tape   *tape                                      // nil: record nothing

	mu      sync.Mutex
	applied map[string]int // by task and static stage: commits whose transaction has been answered with nil
}

func (w *world) gate() *gate { return &gate{Store: w.store, w: w, applied: map[string]int{}} }

// through does an operation of one task, or of those that it returns.
func through[T any](ctx context.Context, g *gate, op string, task stage.ID, f func(ctx context.Context) (T, error)) (none T, err error) {
	if g.before != nil {
		if err := g.before(ctx, op); err != nil {
			return none, err
		}
	}
	if g.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	v, err := g.recorded(op, task, func() (any, error) { return f(ctx) })
	if g.after != nil {
		err = g.after(op, err)
	}
	if err != nil {
		return none, err
	}
	return v.(T), nil
}

// recorded calls f, and records what a second reader sees then.
func (g *gate) recorded(op string, task stage.ID, f func() (any, error)) (any, error) {
	if g.tape == nil || op == heartbeat {
		return f()
	}
	g.tape.mu.Lock()
	defer g.tape.mu.Unlock()
	v, err := f()
	switch v := v.(type) {
	case []stage.ID:
		for _, id := range v {
			g.tape.look(g.w, id)
		}
	case []stage.Task:
		for _, t := range v {
			g.tape.look(g.w, t.ID)
		}
	default:
		g.tape.look(g.w, task)
	}
	return v, err
}

func (g *gate) Enqueue(ctx context.Context, tasks ...stage.NewTask) ([]stage.ID, error) {
	return through(ctx, g, enqueue, 0, func(ctx context.Context) ([]stage.ID, error) {
		return g.Store.Enqueue(ctx, tasks...)
	})
}

func (g *gate) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	return through(ctx, g, claim, 0, func(ctx context.Context) ([]stage.Task, error) { return g.Store.Claim(ctx, c) })
}

func (g *gate) Tick(ctx context.Context, ticks ...stage.Tick) (stage.Ticked, error) {
	return through(ctx, g, "Tick", 0, func(ctx context.Context) (stage.Ticked, error) { return g.Store.Tick(ctx, ticks...) })
}

func (g *gate) Claimed(ctx context.Context, t stage.Ticket) ([]stage.Task, error) {
	return through(ctx, g, claimed, 0, func(ctx context.Context) ([]stage.Task, error) { return g.Store.Claimed(ctx, t) })
}

func (g *gate) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	return through(ctx, g, enter, l.Task, func(ctx context.Context) (stage.Task, error) {
		return g.Store.Enter(ctx, l, at, attempt)
	})
}

func (g *gate) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	_, err := through(ctx, g, finish, l.Task, func(ctx context.Context) (struct{}, error) {
		called := false
		watched := func(ctx context.Context, tx stage.Tx) error {
			called = true
			if err := commit(ctx, tx); err != nil || g.spoil == nil {
				return err
			}
			return g.spoil()
		}
		if commit == nil {
			watched = nil
		}
		err := g.Store.Finish(ctx, l, p, watched)
		if err == nil && called {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.applied[fmt.Sprint(l.Task, " ", p.To)]++
		}
		return struct{}{}, err
	})
	return err
}

func (g *gate) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	return through(ctx, g, giveBack, l.Task, func(ctx context.Context) (stage.Status, error) { return g.Store.Return(ctx, l, r) })
}

func (g *gate) Heartbeat(ctx context.Context, renewals []stage.Renewal, d time.Duration) ([]stage.Beat, error) {
	return through(ctx, g, heartbeat, 0, func(ctx context.Context) ([]stage.Beat, error) {
		return g.Store.Heartbeat(ctx, renewals, d)
	})
}

func (g *gate) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return through(ctx, g, suspend, id, func(ctx context.Context) (bool, error) { return g.Store.Suspend(ctx, id) })
}

func (g *gate) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return through(ctx, g, resume, id, func(ctx context.Context) (bool, error) { return g.Store.Resume(ctx, id, failed) })
}

func (g *gate) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	return through(ctx, g, cancel, id, func(ctx context.Context) (bool, error) { return g.Store.Cancel(ctx, id) })
}

// times is how often the commit of a stage has been applied.
func (g *gate) times(task stage.ID, static string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.applied[fmt.Sprint(task, " ", static)]
}

// errTrouble is what a gate answers.
var errTrouble = errors.New("the store is in trouble")

// hold makes one operation wait: the first on which it is called after arm. arrived is closed when it has come, and
// it goes on when release is closed.
type hold struct {
	op               string
	armed            atomic.Bool
	arrived, release chan struct{}
}

func newHold(op string) *hold {
	return &hold{op: op, arrived: make(chan struct{}), release: make(chan struct{})}
}

func (h *hold) arm() { h.armed.Store(true) }

// before is for gate.before.
func (h *hold) before(_ context.Context, op string) error {
	if op == h.op && h.armed.CompareAndSwap(true, false) {
		close(h.arrived)
		<-h.release
	}
	return nil
}

// after is for gate.after.
func (h *hold) after(op string, err error) error {
	_ = h.before(context.Background(), op)
	return err
}
