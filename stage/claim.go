package stage

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/stage/store"
)

// Fire claims due tasks, as many as Config.Workers leaves room for, and begins to work on them. It is for programs and
// tests that decide themselves when to claim; Run and Setup do it for you. Tasks of higher priorities come first.
// Within a priority new tasks come last, and the others come in the order in which they became due, whether they were
// resumed, are tried again, or had a worker whose lease has ended. Fire returns the number of tasks as soon as they are
// claimed; [Engine.Wait] waits until they are done. Each task goes to one engine, however many engines, goroutines and
// processes call Fire.
//
// After Stop the error is ErrInterrupted. If ctx ends during the call, tasks that the store has claimed already are given
// back with a later heartbeat.
func (e *Engine) Fire(ctx context.Context) (int, error) {
	works, err := e.claim(ctx)
	e.where().take(works)
	return len(works), err
}

// claim is a claim that the store has not answered yet.
type claim struct {
	ticket   store.Ticket
	room     int                  // how many tasks it asks for
	kinds    []string             // of these kinds
	most     map[string]int       // how many of kinds with a bound of their own
	now      func() time.Duration // the clock of the host
	asked    time.Duration        // when it was made: the leases count from before the claim
	answered bool
}

func (e *Engine) claim(ctx context.Context) (works []*work, err error) {
	c, err := e.reserve()
	if c == nil {
		return nil, err
	}
	var tasks []store.Task
	defer func() { works = e.admit(c, tasks) }()           // even if the store panics
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease/2) // a claim that takes longer leaves too little of the lease
	defer cancel()
	tasks, err = e.cfg.Store.Claim(ctx, store.Claim{
		Ticket: c.ticket, Worker: e.cfg.Worker, Kinds: c.kinds, Limit: c.room, Most: c.most, Length: e.cfg.Lease, Shows: e.shows,
		Priorities: e.priorities,
	})
	e.counts.claimed.Add(uint64(len(tasks)))
	if c.answered = err == nil; c.answered {
		e.answered()
	}
	return nil, err
}

// mostClaimed bounds how many tasks a claim asks for, and so how long it takes. The plans of stage/postgres rely on it.
const mostClaimed = 1000

// reserve begins a claim for the room that Config.Workers leaves. If there is none it returns nil.
func (e *Engine) reserve() (*claim, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return nil, ErrInterrupted
	}
	room := min(e.cfg.Workers+e.leaving, 2*e.cfg.Workers) - len(e.works)
	for _, c := range e.claims {
		room -= c.room
	}
	if room <= 0 {
		return nil, nil
	}
	kinds, most := e.rooms()
	if len(kinds) == 0 {
		return nil, nil
	}
	e.number++
	c := &claim{ticket: store.Ticket{Engine: e.id, Number: e.number}, room: min(room, mostClaimed), kinds: kinds, most: most, now: e.host.now}
	c.asked = c.now()
	e.claims = append(e.claims, c)
	return c, nil
}

// rooms returns the kinds that have room, and how much room the bounded ones have. Under mu.
func (e *Engine) rooms() (kinds []string, most map[string]int) {
	if !e.bounded {
		return e.kinds, nil
	}
	most = map[string]int{}
	for _, name := range e.kinds {
		if workers := e.cfg.Kinds[name].Workers; workers > 0 {
			for _, w := range e.works {
				if w.kind == name && !w.leaves {
					workers--
				}
			}
			for _, c := range e.claims {
				workers -= c.most[name]
			}
			if workers <= 0 {
				continue
			}
			most[name] = workers
		}
		kinds = append(kinds, name)
	}
	return kinds, most
}

// full reports whether there may be more tasks than the claim has got: it has got as many as it asked for, in all or of a
// kind, or there are kinds of which it could not ask for any.
func (c *claim) full(tasks []store.Task, kinds int) bool {
	of := map[string]int{}
	for _, t := range tasks {
		of[t.Kind]++
	}
	for kind, most := range c.most {
		if of[kind] == most {
			return true
		}
	}
	return len(tasks) == c.room || len(c.kinds) < kinds
}

// admit ends a claim, and makes a work of each claimed task.
func (e *Engine) admit(c *claim, tasks []store.Task) []*work {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claims = slices.DeleteFunc(e.claims, func(other *claim) bool { return other == c })
	e.more = c.full(tasks, len(e.kinds))
	if !c.answered {
		e.recoveries = int(2*e.cfg.Lease/e.cfg.Heartbeat) + 1
	}
	works := make([]*work, len(tasks))
	for i, t := range tasks {
		works[i] = newWork(e, t, c.now, c.asked+e.cfg.Lease)
		if e.stopping {
			works[i].stop(ErrInterrupted)
		}
	}
	e.works = append(e.works, works...)
	e.settle()
	return works
}

// shows returns at which stages claims show the tasks of a kind: at the next dynamic one, if there is one. A task whose
// worker was lost at a dynamic stage goes back to the static one before, and that was an attempt. So does a task that is
// found at a dynamic stage otherwise, perhaps one of another release, without an attempt. Of a task that was lost at a
// static stage there may be a request, so it stays there until it enters the next.
func shows(kind string, c *Chain) (all []store.Show) {
	for i := 1; i < len(c.stages); i += 2 {
		before, dynamic := c.stages[i-1].name, c.stages[i].name
		all = append(all,
			store.Show{Kind: kind, Found: before, Stage: dynamic},
			store.Show{Kind: kind, Found: dynamic, Stage: before},
			store.Show{Kind: kind, Found: dynamic, Lost: true, Stage: before, Attempts: 1},
		)
	}
	return all
}

// recoverClaims gives back the tasks of claims whose answers were lost: this engine has not begun them, and their
// leases would cost them an attempt. A claim may be committed after it was given up, even when the engine runs again
// after a Stop, so heartbeats ask for such tasks during two leases.
func (e *Engine) recoverClaims(ctx context.Context) error {
	e.mu.Lock()
	e.dropped = slices.DeleteFunc(e.dropped, func(w *work) bool { return w.until <= w.now() })
	recoveries, known, before := e.recoveries, slices.Concat(e.works, e.dropped), store.Ticket{Engine: e.id, Number: e.number + 1}
	if len(e.claims) > 0 {
		before = e.claims[0].ticket
	}
	e.mu.Unlock()
	if recoveries == 0 {
		return nil
	}
	now := e.where().now
	asked := now()
	tasks, err := e.cfg.Store.Claimed(ctx, before)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.recoveries = max(0, e.recoveries-1)
	e.mu.Unlock()
	var lost []*work
	for _, t := range tasks {
		if !slices.ContainsFunc(known, func(w *work) bool { return w.lease == t.Lease() }) {
			lost = append(lost, newWork(e, t, now, asked+e.cfg.Lease))
		}
	}
	if len(lost) > 0 {
		e.cfg.Logger.Warn("the answer of a claim was lost, and its tasks go back", zap.Int("tasks", len(lost)))
		e.sendBack(ctx, lost) // the next heartbeat asks for the remaining ones
		e.where().ring()
	}
	return nil
}

// sendBack gives back works that no host takes, on this goroutine, until ctx ends. If the store does not answer, their leases
// end.
func (e *Engine) sendBack(ctx context.Context, works []*work) {
	for _, w := range works {
		w.stop(ErrInterrupted)
		defer context.AfterFunc(ctx, func() { w.lose(store.ErrLeaseLost) })()
		for after := time.Duration(0); after == 0 && !w.over(); {
			after = w.step()
		}
		e.remove(w)
	}
}
