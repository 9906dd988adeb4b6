package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/stage/store"
)

// Result waits until a task has ended, and returns it. Its Err says how it has ended, and its Data is the result that
// its last stage has left. A suspended task has not ended. The error is store.ErrNotFound if there is no such task, or
// if it is deleted meanwhile, and the cause of ctx's end when ctx ends. A store that does not answer is asked again.
//
// Any engine may work on the task, and this one need not run. If this engine ends the task, Result returns at once.
// Otherwise the engine polls the store, at intervals of one and a half of Config.Poll at most. One call of the store
// asks for all tasks that goroutines wait for through this engine, up to 1000, with their Data. While no caller waits,
// there are no calls.
//
// Result blocks, so it is for goroutines: see [Engine.Future] for actions. A processor that waits keeps its place among
// the Workers.
func (e *Engine) Result(ctx context.Context, id store.ID) (store.Task, error) {
	type end struct {
		task store.Task
		err  error
	}
	c := make(chan end, 1)
	e.alone.waits.wait(ctx, id, func(t store.Task, err error) { c <- end{t, err} })
	x := <-c
	return x.task, x.err
}

// Future returns a future of s that is resolved when the task has ended. It fails with the errors of [Engine.Result].
// An action waits for it with its Await, a coroutine with coro.Value, an actor with process.Do. To give up, end ctx.
// Any goroutine may call Future.
//
// If s is in the Group of the engine, the store is asked in turns there, with the clock of the Group. That goes on when
// the engine has stopped, since other engines may finish the task, until the scheduler of the engine is closed. Then
// the future fails with act.ErrDropped. In any other case a goroutine asks, for as long as something waits.
//
// The future does not keep Run of the Group from returning. A task that waits for it does, even during a shutdown,
// within its policy: end ctx if it should not.
func (e *Engine) Future(ctx context.Context, s *act.Scheduler, id store.ID) *future.Future[store.Task] {
	f := future.New[store.Task](s)
	e.waitsOf(s).wait(ctx, id, func(t store.Task, err error) {
		switch {
		case err == nil:
			_ = f.Resolve(t)
		case f.Fail(err) == nil && !errors.Is(err, store.ErrNotFound):
			_, _ = f.Value() // so that it counts as seen: the caller has ended ctx, or the scheduler is closed
		}
	})
	return f
}

func (e *Engine) waitsOf(s *act.Scheduler) *waits {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.maintenance; x != nil && x.s.Group() == s.Group() {
		return x.waits
	}
	return e.alone.waits
}

// forget is called when the scheduler of x is closed.
func (e *Engine) forget(x *maintenance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.maintenance == x {
		e.maintenance = nil
	}
}

// mayHaveEnded tells the waits for the task, if it has ended.
func (e *Engine) mayHaveEnded(id store.ID) {
	e.mu.Lock()
	x := e.maintenance
	e.mu.Unlock()
	e.alone.waits.recall(id)
	if x != nil {
		x.waits.recall(id)
	}
}

// waits are tasks whose ends are waited for. A goroutine polls for the ends while there are any, or the monitor of a
// Group does.
type waits struct {
	e     *Engine
	now   func() time.Duration            // the clock of the host
	begin func(*waits) (ring, end func()) // begins to poll; nil in a Group

	mu   sync.Mutex
	of   map[store.ID][]*wait // in order of their beginnings; nil if they are closed
	news map[store.ID]bool    // not to wait for next: a wait for it has begun, or it may have ended here
	next time.Duration        // when to ask for all
	ring func()               // makes poll run
	end  func()               // ends the polling; nil in a Group
}

func newWaits(e *Engine, now func() time.Duration) *waits {
	return &waits{e: e, now: now, of: map[store.ID][]*wait{}, news: map[store.ID]bool{}}
}

type wait struct {
	id   store.ID
	told func(store.Task, error) // is called once, and does not block
	off  func() bool             // forgets the context
	over bool                    // it is told, or going to be; under the mu of its waits
}

const mostAwaited = 1000 // in a call of the store

// wait calls told with the task when it has ended, or with an error. It registers first, and polls afterwards.
func (x *waits) wait(ctx context.Context, id store.ID, told func(store.Task, error)) {
	w := &wait{id: id, told: told}
	w.off = context.AfterFunc(ctx, func() {
		if x.leave(w) {
			w.told(store.Task{}, context.Cause(ctx))
		}
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case w.over:
		return
	case x.of == nil:
		w.over = true
		w.off()
		w.told(store.Task{}, act.ErrDropped)
		return
	case len(x.of) == 0 && x.begin != nil:
		x.ring, x.end = x.begin(x)
	}
	x.of[id] = append(x.of[id], w)
	x.news[id] = true
	x.ring()
}

// leave ends w, and reports whether it was not over before.
func (x *waits) leave(w *wait) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.over {
		return false
	}
	w.over = true
	some, waiting := x.of[w.id]
	if !waiting { // it has not begun, or they are closed
		return true
	}
	if some = slices.DeleteFunc(some, func(other *wait) bool { return other == w }); len(some) > 0 {
		x.of[w.id] = some
		return true
	}
	delete(x.of, w.id)
	delete(x.news, w.id)
	if len(x.of) == 0 && x.end != nil {
		x.end()
	}
	return true
}

// recall makes a poll ask for a task at once, if it is waited for.
func (x *waits) recall(id store.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.of[id]) > 0 {
		x.news[id] = true
		x.ring()
	}
}

// poll asks the store for the tasks that are waited for: for all if it is time, otherwise for the news.
func (x *waits) poll(ctx context.Context) (after time.Duration, err error) {
	asked, err := x.take(ctx)
	if err != nil {
		return 0, err
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(asked)), mostAwaited) {
		tasks, err := x.e.cfg.Store.List(ctx, store.Selection{IDs: ids})
		if err != nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.next = 0
			return 0, err
		}
		x.e.answered()
		for _, t := range tasks {
			if t.Ended() {
				x.tell(asked[t.ID], t, nil)
			}
			delete(asked, t.ID)
		}
		for _, id := range ids {
			if some, missing := asked[id]; missing {
				x.tell(some, store.Task{}, fmt.Errorf("%w: %d", store.ErrNotFound, id))
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.of) == 0 {
		return rarely, nil
	}
	return max(0, x.next-x.now()), nil
}

// take returns the waits whose tasks the store is to be asked for. What the store has answered before a wait began counts for
// nothing for it: the task may have been resumed since.
func (x *waits) take(ctx context.Context) (map[store.ID][]*wait, error) {
	again := x.e.polling()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err // the news are for the next poll, perhaps of another goroutine
	}
	asked := map[store.ID][]*wait{}
	if now := x.now(); now >= x.next {
		x.next = now + again
		for id, some := range x.of {
			asked[id] = slices.Clone(some)
		}
	} else {
		for id := range x.news {
			asked[id] = slices.Clone(x.of[id])
		}
	}
	clear(x.news)
	return asked, nil
}

// tell ends waits with their tasks. Each gets bytes of its own.
func (x *waits) tell(some []*wait, t store.Task, err error) {
	for _, w := range some {
		if x.leave(w) {
			w.off()
			w.told(t, err)
			t.Data, t.Progress = slices.Clone(t.Data), slices.Clone(t.Progress)
		}
	}
}

func (x *waits) close() {
	x.mu.Lock()
	of := x.of
	x.of = nil
	x.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(of)) {
		x.tell(of[id], store.Task{}, act.ErrDropped)
	}
}
