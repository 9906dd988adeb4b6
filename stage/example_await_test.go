package stage_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// greetings are tasks whose data are a name at first, and then a greeting.
var greetings = stage.Typed[string]{Kind: "greeting"}

// greeter returns an engine that makes greetings.
func greeter() *stage.Engine {
	greet := func(_ context.Context, _ *store.Task, name string) (store.Commit, error) {
		return func(_ context.Context, tx store.Tx) error { return greetings.SetData(tx, "hello, "+name) }, nil
	}
	return must(stage.New(stage.Config{
		Store:      memory.New(nil),
		Kinds:      map[string]stage.Kind{"greeting": {Chain: stage.Begin("NEW").Then("WRITING", "greet", "WRITTEN")}},
		Processors: map[string]stage.Processor{"greet": greetings.Processor(greet)},
	}))
}

// enqueue is an action that adds a greeting. Other actions go on while the store is asked.
func enqueue(engine *stage.Engine, name string) *act.Call[store.ID] {
	return stage.NewCall(engine, func(ctx context.Context) (store.ID, error) { return greetings.Enqueue(ctx, engine, name) })
}

// printGreeting prints the result of a task that has ended.
func printGreeting(t store.Task, err error) {
	if err == nil {
		err = t.Err()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(greetings.Value(&t))
}

// runGreeter runs an engine, and what begin adds, in a Group until end is called.
func runGreeter(begin func(s *act.Scheduler, e *stage.Engine, end func()), more ...func(*act.Scheduler) error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	engine := greeter()
	err := act.Run(ctx, act.Config{Schedulers: 1}, append(more, engine.Setup, func(s *act.Scheduler) error {
		begin(s, engine, cancel)
		return nil
	})...)
	if err != nil {
		fmt.Println(err)
	}
}

// A goroutine waits for the result of a task. The engine may run in this process or another one.
func ExampleTyped_Result() {
	engine := greeter()
	ctx, cancel := context.WithCancel(context.Background())
	var engines sync.WaitGroup
	engines.Go(func() { _ = engine.Run(ctx) })

	id, _ := greetings.Enqueue(ctx, engine, "goroutine")
	fmt.Println(greetings.Result(ctx, engine, id))

	cancel()
	engines.Wait()
	// Output: hello, goroutine <nil>
}

// visitor is an action that enqueues a task, and waits for its result.
type visitor struct {
	engine  *stage.Engine
	enqueue *act.Call[store.ID]
	ended   *future.Future[store.Task]
	wait    act.Action
	leave   func()
}

func (v *visitor) Act(t *act.Task) act.Directive {
	if v.ended == nil {
		if d := v.enqueue.Act(t); d != act.Done {
			return d
		}
		v.ended = v.engine.Future(context.Background(), t.Scheduler(), v.enqueue.Value)
		v.wait = v.ended.Await()
	}
	if d := v.wait.Act(t); d != act.Done {
		return d
	}
	printGreeting(v.ended.Value())
	v.leave()
	return act.Done
}

// An action waits for the result of a task.
func ExampleEngine_Future() {
	runGreeter(func(s *act.Scheduler, e *stage.Engine, end func()) {
		s.Spawn(&visitor{engine: e, enqueue: enqueue(e, "action"), leave: end})
	})
	// Output: hello, action <nil>
}

// A coroutine waits for the result of a task.
func ExampleEngine_Future_coroutine() {
	runGreeter(func(s *act.Scheduler, e *stage.Engine, end func()) {
		s.Spawn(coro.New(func(co *coro.Co) error {
			defer end()
			add := enqueue(e, "coroutine")
			if err := co.Do(add); err != nil {
				return err
			}
			printGreeting(coro.Value(co, e.Future(co.Context(), co.Scheduler(), add.Value)))
			return nil
		}))
	})
	// Output: hello, coroutine <nil>
}
