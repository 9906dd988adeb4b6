package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// tape is a Store that writes down what a second reader sees of a task after each transition, if that is something
// else than before. Only heartbeats pass beside it.
type tape struct {
	stage.Store
	w *world

	mu    sync.Mutex // over the transition and the look
	names map[stage.ID]string
	seen  map[stage.ID][]string
}

func (w *world) tape() *tape {
	return &tape{Store: w.store, w: w, names: map[stage.ID]string{}, seen: map[stage.ID][]string{}}
}

// look adds what is seen of a task. Under mu.
func (p *tape) look(ids ...stage.ID) {
	for _, id := range ids {
		t, err := p.w.other.Get(p.w.ctx, id)
		if err != nil {
			continue
		}
		now := state(t)
		if t.Status == stage.Error {
			now += ": " + t.Failure
		}
		if seen := p.seen[id]; len(seen) == 0 || seen[len(seen)-1] != now {
			p.seen[id] = append(seen, now)
			p.w.note("%s: %s", p.names[id], now)
		}
	}
}

// history is all that was seen of a task.
func (p *tape) history(id stage.ID) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen[id])
}

func (p *tape) Enqueue(ctx context.Context, kind, at string, data []byte) (stage.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, err := p.Store.Enqueue(ctx, kind, at, data)
	p.names[id] = string(data)
	p.look(id)
	return id, err
}

func (p *tape) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tasks, err := p.Store.Claim(ctx, c)
	for _, t := range tasks {
		p.look(t.ID)
	}
	return tasks, err
}

func (p *tape) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.look(l.Task)
	return p.Store.Enter(ctx, l, at, attempt)
}

func (p *tape) Finish(ctx context.Context, l stage.Lease, passage stage.Passage, commit stage.Commit) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.look(l.Task)
	return p.Store.Finish(ctx, l, passage, commit)
}

func (p *tape) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.look(l.Task)
	return p.Store.Return(ctx, l, r)
}

func (p *tape) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.look(id)
	return p.Store.Suspend(ctx, id)
}

func (p *tape) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.look(id)
	return p.Store.Resume(ctx, id, failed)
}

func (p *tape) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.look(id)
	return p.Store.Cancel(ctx, id)
}

// The operations of a Store that a gate knows.
const (
	enqueue   = "Enqueue"
	claim     = "Claim"
	enter     = "Enter"
	finish    = "Finish"
	giveBack  = "Return"
	heartbeat = "Heartbeat"
	suspend   = "Suspend"
	resume    = "Resume"
	cancel    = "Cancel"
)

// gate is a Store that can delay an operation, and make an error of it before it is done or
// when it has been done. Its fields are set before it is used.
type gate struct {
	stage.Store
	before func(op string) error            // nil: go on
	after  func(op string, err error) error // what is answered instead of err
	// spoil makes a transaction fail when its commit has been called.
	spoil func() error
	// deaf operations ignore the end of their context.
	deaf bool

	mu      sync.Mutex
	applied map[string]int // by task and static stage: commits whose transaction has been answered with nil
}

func (w *world) gate() *gate { return &gate{Store: w.store, applied: map[string]int{}} }

func through[T any](ctx context.Context, g *gate, op string, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if g.before != nil {
		if err := g.before(op); err != nil {
			return none, err
		}
	}
	if g.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	v, err := f(ctx)
	if g.after != nil {
		if err = g.after(op, err); err != nil {
			return none, err
		}
	}
	return v, err
}

func (g *gate) Enqueue(ctx context.Context, kind, at string, data []byte) (stage.ID, error) {
	return through(ctx, g, enqueue, func(ctx context.Context) (stage.ID, error) {
		return g.Store.Enqueue(ctx, kind, at, data)
	})
}

func (g *gate) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	return through(ctx, g, claim, func(ctx context.Context) ([]stage.Task, error) { return g.Store.Claim(ctx, c) })
}

func (g *gate) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	return through(ctx, g, enter, func(ctx context.Context) (stage.Task, error) {
		return g.Store.Enter(ctx, l, at, attempt)
	})
}

func (g *gate) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	_, err := through(ctx, g, finish, func(ctx context.Context) (struct{}, error) {
		called := false
		watched := func(tx stage.Tx) error {
			called = true
			if err := commit(tx); err != nil || g.spoil == nil {
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
	return through(ctx, g, giveBack, func(ctx context.Context) (stage.Status, error) { return g.Store.Return(ctx, l, r) })
}

func (g *gate) Heartbeat(ctx context.Context, leases []stage.Lease, d time.Duration) ([]stage.Beat, error) {
	return through(ctx, g, heartbeat, func(ctx context.Context) ([]stage.Beat, error) {
		return g.Store.Heartbeat(ctx, leases, d)
	})
}

func (g *gate) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return through(ctx, g, suspend, func(ctx context.Context) (bool, error) { return g.Store.Suspend(ctx, id) })
}

func (g *gate) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return through(ctx, g, resume, func(ctx context.Context) (bool, error) { return g.Store.Resume(ctx, id, failed) })
}

func (g *gate) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	return through(ctx, g, cancel, func(ctx context.Context) (bool, error) { return g.Store.Cancel(ctx, id) })
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
	mu               sync.Mutex
	armed            bool
	arrived, release chan struct{}
}

func newHold(op string) *hold {
	return &hold{op: op, arrived: make(chan struct{}), release: make(chan struct{})}
}

func (h *hold) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = true
}

func (h *hold) takes(op string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	takes := h.armed && op == h.op
	if takes {
		h.armed = false
	}
	return takes
}

// before is for gate.before.
func (h *hold) before(op string) error {
	if h.takes(op) {
		close(h.arrived)
		<-h.release
	}
	return nil
}

// after is for gate.after.
func (h *hold) after(op string, err error) error {
	_ = h.before(op)
	return err
}
