package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

// An order is the Data of each task.
type order struct {
	Name  string `json:"name"`
	Steps int    `json:"steps"` // of each stage, 0 if it has none yet
}

var orders = stage.Typed[order]{}

// names has the kinds in the order in which they are shown. The first ones are also added in turn.
var (
	names  = []string{"picture", "invoice", "mail", "report"}
	inTurn = names[:3]
)

// kinds are the kinds of tasks. All but reports only pretend to work.
var kinds = map[string]stage.Kind{
	"picture": {
		Queue: "pictures", Workers: 12, // of the usual 16, so that many pictures do not keep invoices waiting
		Backoff: linear,
		Chain: stage.Begin("UPLOADED").
			Then("SCALING", "work", "SCALED").
			Then("LABELLING", "work", "LABELLED").
			Then("PUBLISHING", "work", "PUBLISHED"),
	},
	"invoice": {
		Queue: "papers", Backoff: linear,
		Chain: stage.Begin("ORDERED").
			Then("PRICING", "work", "PRICED").
			Then("PRINTING", "work", "PRINTED"),
	},
	"mail": { // before all others; another server may be out of order for an hour, or never answer
		Queue: "papers", Priority: 1, Attempts: 12, Timeout: 10 * time.Minute,
		Backoff: func(n int) time.Duration { return time.Second << n },
		Chain:   stage.Begin("WRITTEN").Then("SENDING", "work", "SENT"),
	},
	"report": {
		Queue: "papers", Backoff: linear,
		Chain: stage.Begin("DUE").Then("COUNTING", "report", "COUNTED"),
	},
}

// linear is the time after an attempt that has failed.
func linear(n int) time.Duration { return time.Duration(n) * time.Second }

// processors has one processor of all stages but that of reports.
func (x *Jobs) processors() map[string]stage.Processor {
	return map[string]stage.Processor{"work": orders.Processor(x.work), "report": x.report}
}

// timed is a middleware: errors, which the page shows, say how long the attempt has taken.
func timed(next stage.Processor) stage.Processor {
	return func(ctx context.Context, t *store.Task) (store.Commit, error) {
		begun := time.Now()
		commit, err := next(ctx, t)
		if err != nil {
			err = fmt.Errorf("%w (after %v)", err, time.Since(begun).Round(time.Millisecond))
		}
		return commit, err
	}
}

// report counts the tasks in each state. The numbers become the Data of the task.
func (x *Jobs) report(ctx context.Context, _ *store.Task) (store.Commit, error) {
	counts, err := x.engine.Store().Counts(ctx)
	if err != nil {
		return nil, err
	}
	n := map[state]int{}
	for _, c := range counts {
		n[stateOf(c.Kind, c.Stage, c.Status)] += c.N
	}
	return func(_ context.Context, tx store.Tx) error { return stage.Typed[map[state]int]{}.SetData(tx, n) }, nil
}

// most is how many steps a stage has at most.
const most = 8

// work takes some steps, with a pause before each, and then succeeds or fails. The number of steps that it has taken is its
// progress, so that another worker goes on there.
func (x *Jobs) work(ctx context.Context, t *store.Task, o order) (store.Commit, error) {
	steps := stepsOf(t)
	for n := taken(t.Progress); n < steps; n++ {
		select {
		case <-time.After(x.Pace):
		case <-ctx.Done():
			return nil, stage.CheckSuspended(ctx)
		}
		stage.SetProgress(ctx, fmt.Appendf(nil, "%d of %d", n+1, steps))
	}
	switch luck := draw(t, t.Token); {
	case luck%101 == 0:
		return nil, stage.Permanent(fmt.Errorf("%s: %q cannot be done", t.Stage, o.Name))
	case luck%13 == 0:
		return nil, errors.New("no luck this time")
	}
	o.Steps += steps
	return func(_ context.Context, tx store.Tx) error { return orders.SetData(tx, o) }, nil
}

// stepsOf returns how many steps the stage takes at which a task is.
func stepsOf(t *store.Task) int { return 1 + int(draw(t, 0)%most) }

// taken returns how many steps a progress says are done, 0 if there is none.
func taken(progress []byte) (n int) {
	_, _ = fmt.Sscan(string(progress), &n)
	return n
}

// draw returns a number that is the same each time for a stage of a task and n.
func draw(t *store.Task, n int64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, t.ID, t.Stage, n)
	return h.Sum64() >> 16
}
