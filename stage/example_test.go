package stage_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// must returns an engine that is configured well.
func must(e *stage.Engine, err error) *stage.Engine {
	if err != nil {
		panic(err)
	}
	return e
}

// work has an engine claim what is due, and waits for that. A program that stays calls Run, or has a Group call Setup.
func work(e *stage.Engine) {
	_, _ = e.Fire(context.Background())
	_ = e.Wait(context.Background())
}

func ExampleChain() {
	chain := stage.Begin("CREATED").
		Then("LOADING_DATA", "load", "DATA_LOADED").
		Then("BUILDING_REPORT", "build", "FINISHED")
	fmt.Println(chain.Stages())

	_, err := stage.New(stage.Config{
		Store:      memory.New(nil),
		Processors: map[string]stage.Processor{},
		Kinds:      map[string]stage.Kind{"report": {Chain: stage.Begin("CREATED").Then("LOADING_DATA", "", "CREATED")}},
	})
	fmt.Println(err)
	// Output:
	// [CREATED LOADING_DATA DATA_LOADED BUILDING_REPORT FINISHED]
	// stage: Config.Kinds["report"].Chain has no processor for the dynamic stage "LOADING_DATA"
	// stage: Config.Kinds["report"].Chain has CREATED twice
}

// reports has two processors. One waits for paper the first time.
func reports() (map[string]stage.Kind, map[string]stage.Processor) {
	chain := stage.Begin("CREATED").
		Then("LOADING_DATA", "load", "DATA_LOADED").
		Then("BUILDING_REPORT", "build", "FINISHED")
	load := func(ctx context.Context, t *store.Task) (store.Commit, error) {
		data := append(t.Data, ", loaded"...)               // computed first,
		return func(_ context.Context, tx store.Tx) error { // written last, together with DATA_LOADED
			tx.SetData(data)
			return nil
		}, nil
	}
	var paper atomic.Bool // several reports may be built at the same time
	build := func(ctx context.Context, t *store.Task) (store.Commit, error) {
		if !paper.Swap(true) {
			return nil, stage.Permanent(errors.New("out of paper"))
		}
		return func(_ context.Context, tx store.Tx) error {
			tx.SetData(append(t.Data, ", built"...))
			return nil
		}, nil
	}
	return map[string]stage.Kind{"report": {Chain: chain}},
		map[string]stage.Processor{"load": load, "build": build}
}

// An engine without Run works on what Fire claims, and does nothing else.
func ExampleEngine() {
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{Store: memory.New(nil), Kinds: kinds, Processors: processors}))
	ctx := context.Background()
	id, _ := engine.Enqueue(ctx, "report", []byte("sales"))
	show := func(did string) {
		t, _ := engine.Store().Get(ctx, id)
		fmt.Printf("%-10s %s, %s: %s\n", did, t.Stage, t.Status, t.Data)
		if t.Failure != "" {
			fmt.Println("because of", t.Failure)
		}
	}
	show("enqueued:")
	_, _ = engine.Suspend(ctx, id)
	work(engine)
	show("suspended:")
	_, _ = engine.Resume(ctx, id)
	show("resumed:")
	work(engine)
	show("fired:")
	_, _ = engine.Retry(ctx, id)
	work(engine)
	show("fired:")
	// Output:
	// enqueued:  CREATED, NORMAL: sales
	// suspended: CREATED, SUSPENDED: sales
	// resumed:   CREATED, RESUMED: sales
	// fired:     DATA_LOADED, ERROR: sales, loaded
	// because of out of paper
	// fired:     FINISHED, NORMAL: sales, loaded, built
}

// OnEnd tells the program that enqueues tasks how each of them has ended.
func ExampleConfig_onEnd() {
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{
		Store: memory.New(nil), Kinds: kinds, Processors: processors,
		OnEnd: func(t store.Task) {
			if t.Finished() {
				fmt.Println(t.String(), "has finished")
			} else {
				fmt.Println(t.String(), "has ended:", t.Status, t.Failure)
			}
		},
	}))
	ctx := context.Background()
	for range 2 { // the first fails, since there is no paper
		_, _ = engine.Enqueue(ctx, "report", nil)
		work(engine)
	}
	// Output:
	// report 1 has ended: ERROR out of paper
	// report 2 has finished
}

// Month is what the tasks of ExampleTyped are about.
type Month struct{ Year, Month int }

// The data of a task is a value of a type of the program.
func ExampleTyped() {
	months := stage.Typed[Month]{Kind: "month"}
	engine := must(stage.New(stage.Config{
		Store: memory.New(nil),
		Kinds: map[string]stage.Kind{"month": {Chain: stage.Begin("OPEN").Then("CLOSING", "close", "CLOSED")}},
		Processors: map[string]stage.Processor{
			"close": months.Processor(func(_ context.Context, _ *store.Task, m Month) (store.Commit, error) {
				next := Month{m.Year, m.Month + 1}
				return func(_ context.Context, tx store.Tx) error { return months.SetData(tx, next) }, nil
			}),
		},
	}))
	ctx := context.Background()
	id, _ := months.Enqueue(ctx, engine, Month{2026, 5})
	work(engine)
	t, _ := engine.Store().Get(ctx, id)
	next, err := months.Value(&t)
	fmt.Println(string(t.Data), next.Month, err)
	// Output: {"Year":2026,"Month":6} 6 <nil>
}

// A middleware sees each stage begin and end. Here it writes what a tracer would get.
func ExampleConfig_middleware() {
	traced := func(next stage.Processor) stage.Processor {
		return func(ctx context.Context, t *store.Task) (store.Commit, error) {
			fmt.Println(t, "begins", t.Stage)
			commit, err := next(ctx, t)
			fmt.Println(t, "has ended", t.Stage+":", err)
			return commit, err
		}
	}
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{
		Store: memory.New(nil), Kinds: kinds, Processors: processors,
		Middleware: []func(stage.Processor) stage.Processor{traced},
	}))
	ctx := context.Background()
	_, _ = engine.Enqueue(ctx, "report", nil)
	work(engine)
	// Output:
	// report 1 begins LOADING_DATA
	// report 1 has ended LOADING_DATA: <nil>
	// report 1 begins BUILDING_REPORT
	// report 1 has ended BUILDING_REPORT: out of paper
}

// A task can be due later. It is claimed when it is due and an engine has room.
func ExampleEngine_NewTask() {
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{Store: memory.New(nil), Kinds: kinds, Processors: processors}))
	ctx := context.Background()
	soon, _ := engine.NewTask("report", []byte("sales"))
	soon.After = time.Hour
	late := soon
	late.At = time.Date(2100, time.January, 1, 8, 0, 0, 0, time.UTC)
	ids, _ := engine.EnqueueAll(ctx, soon, late)
	for _, id := range ids {
		t, _ := engine.Store().Get(ctx, id)
		fmt.Println(t.Due.Sub(t.Created) == time.Hour, t.Due.Year() == 2100)
	}
	n, _ := engine.Fire(ctx)
	fmt.Println(n, "due now")
	// Output:
	// true false
	// false true
	// 0 due now
}

// A key makes a task the only one of its kind with that key, so the same may be enqueued again: when the answer was lost, or
// by many engines.
func ExampleEngine_NewTask_key() {
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{Store: memory.New(nil), Kinds: kinds, Processors: processors}))
	ctx := context.Background()
	enqueue := func(key string) {
		n, _ := engine.NewTask("report", []byte(key))
		n.Key, n.Within = key, 24*time.Hour
		ids, _ := engine.EnqueueAll(ctx, n)
		fmt.Println(key, ids)
	}
	enqueue("sales")
	enqueue("costs")
	enqueue("sales")
	// Output:
	// sales [1]
	// costs [2]
	// sales [1]
}

// Urgent reports are a kind of their own, with the same chain.
func ExampleKind() {
	chain := stage.Begin("NEW").Then("WRITING", "write", "WRITTEN")
	write := func(_ context.Context, t *store.Task) (store.Commit, error) {
		fmt.Println(t.Kind, string(t.Data))
		return nil, nil
	}
	engine := must(stage.New(stage.Config{
		Store: memory.New(nil),
		Kinds: map[string]stage.Kind{
			"report":        {Chain: chain},
			"urgent report": {Chain: chain, Priority: 1},
		},
		Processors: map[string]stage.Processor{"write": write},
		Workers:    1,
	}))
	ctx := context.Background()
	for _, kind := range []string{"report", "urgent report"} {
		_, _ = engine.Enqueue(ctx, kind, []byte("about "+kind+"s"))
	}
	for range 2 {
		work(engine)
	}
	// Output:
	// urgent report about urgent reports
	// report about reports
}

// Movies are made by engines on machines that are good at it. Others add them.
func ExampleConfig_queues() {
	s := memory.New(nil)
	kinds := map[string]stage.Kind{
		"letter": {Chain: stage.Begin("NEW").Then("WRITING", "write", "WRITTEN")},
		"movie":  {Chain: stage.Begin("NEW").Then("RENDERING", "render", "RENDERED"), Queue: "render"},
	}
	engine := func(queue string) *stage.Engine {
		does := func(_ context.Context, t *store.Task) (store.Commit, error) {
			fmt.Printf("a %s by the engine of %q\n", t.Kind, queue)
			return nil, nil
		}
		return must(stage.New(stage.Config{
			Store: s, Kinds: kinds, Queues: []string{queue}, Processors: map[string]stage.Processor{"write": does, "render": does},
		}))
	}
	web, studio := engine(""), engine("render")
	ctx := context.Background()
	_, _ = web.Enqueue(ctx, "movie", nil)
	_, _ = web.Enqueue(ctx, "letter", nil)
	for _, e := range []*stage.Engine{web, studio} {
		work(e)
	}
	// Output:
	// a letter by the engine of ""
	// a movie by the engine of "render"
}

// Pages of tasks, the newest first.
func ExampleEngine_Store() {
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{Store: memory.New(nil), Kinds: kinds, Processors: processors}))
	ctx := context.Background()
	for range 5 {
		_, _ = engine.Enqueue(ctx, "report", nil)
	}
	page := store.Selection{Kind: "report", Newest: true, Limit: 2}
	for {
		tasks, err := engine.Store().List(ctx, page)
		if err != nil || len(tasks) == 0 {
			fmt.Println(err)
			return
		}
		var ids []store.ID
		for _, t := range tasks {
			ids = append(ids, t.ID)
		}
		fmt.Println(ids)
		page.Before = tasks[len(tasks)-1].ID
	}
	// Output:
	// [5 4]
	// [3 2]
	// [1]
	// <nil>
}

// While a kind is paused, its tasks wait, whatever engine looks for them.
func ExampleEngine_PauseKind() {
	kinds, processors := reports()
	engine := must(stage.New(stage.Config{Store: memory.New(nil), Kinds: kinds, Processors: processors}))
	ctx := context.Background()
	_, _ = engine.Enqueue(ctx, "report", nil)
	fmt.Println(engine.PauseKind(ctx, "report"))
	fmt.Println(engine.Store().Paused(ctx))
	fmt.Println(engine.Fire(ctx))
	fmt.Println(engine.ResumeKind(ctx, "report"))
	fmt.Println(engine.Fire(ctx))
	_ = engine.Wait(ctx)
	// Output:
	// true <nil>
	// [report] <nil>
	// 0 <nil>
	// true <nil>
	// 1 <nil>
}

// Two engines have the same periodic task. Each tick is run once.
func ExamplePeriodic() {
	ran := make(chan string)
	note := func(_ context.Context, t *store.Task) (store.Commit, error) {
		ran <- string(t.Data)
		return nil, nil
	}
	s := memory.New(nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var engines sync.WaitGroup
	for range 2 {
		engine := must(stage.New(stage.Config{
			Store:      s,
			Kinds:      map[string]stage.Kind{"note": {Chain: stage.Begin("NEW").Then("WRITING", "note", "WRITTEN")}},
			Processors: map[string]stage.Processor{"note": note},
			Upkeep: stage.Upkeep{Periodic: map[string]stage.Periodic{
				"ten times a second": {Kind: "note", Schedule: stage.Every(100 * time.Millisecond), Missed: 100},
			}},
		}))
		engines.Go(func() { _ = engine.Run(ctx) })
	}
	seen := map[string]bool{}
	for range 3 {
		tick := <-ran
		fmt.Println(seen[tick])
		seen[tick] = true
	}
	go func() {
		for range ran {
		}
	}()
	cancel()
	engines.Wait()
	close(ran)
	// Output:
	// false
	// false
	// false
}

// imports returns an engine whose tasks have one stage, in which load is called, and a task.
func imports(load stage.Processor) (*stage.Engine, store.ID) {
	engine := must(stage.New(stage.Config{
		Store: memory.New(nil),
		Kinds: map[string]stage.Kind{"import": {
			Chain: stage.Begin("NEW").Then("LOADING", "load", "LOADED"), Backoff: func(int) time.Duration { return 0 },
		}},
		Processors: map[string]stage.Processor{"load": load},
		Logger:     zap.NewNop(),
	}))
	id, _ := engine.Enqueue(context.Background(), "import", nil)
	return engine, id
}

// A processor puts its task off until what it needs is there. That is not a failed attempt.
func ExampleSnooze() {
	ready := false
	load := func(context.Context, *store.Task) (store.Commit, error) {
		if !ready {
			ready = true
			return nil, stage.Snooze(0) // or time.Hour
		}
		return nil, nil
	}
	ctx := context.Background()
	engine, id := imports(load)
	for range 2 {
		work(engine)
		t, _ := engine.Store().Get(ctx, id)
		fmt.Println(t.Stage, t.Status, t.Attempt)
	}
	// Output:
	// NEW NORMAL 0
	// LOADED NORMAL 0
}

// An error that will not go away is not tried again.
func ExamplePermanent() {
	engine, id := imports(func(context.Context, *store.Task) (store.Commit, error) {
		return nil, stage.Permanent(errors.New("no such address"))
	})
	work(engine)
	t, err := engine.Result(context.Background(), id)
	fmt.Println(t.Status, "after attempt", t.Attempt, "of 5:", t.Failure, err)
	// Output: ERROR after attempt 1 of 5: no such address <nil>
}

// A processor notes how far it has come. When it is tried again, after a failure or a crash, it goes on from there.
func ExampleSetProgress() {
	lines := []string{"one", "two", "three"}
	stumbled := false
	load := func(ctx context.Context, t *store.Task) (store.Commit, error) {
		done, _ := strconv.Atoi(string(t.Progress))
		for i := done; i < len(lines); i++ {
			if lines[i] == "three" && !stumbled {
				stumbled = true
				return nil, errors.New("stumbled")
			}
			fmt.Println("imported", lines[i])
			stage.SetProgress(ctx, []byte(strconv.Itoa(i+1)))
		}
		return nil, nil
	}
	ctx := context.Background()
	engine, id := imports(load)
	for range 2 {
		work(engine)
		t, _ := engine.Store().Get(ctx, id)
		fmt.Println(t.Stage, t.Status)
	}
	// Output:
	// imported one
	// imported two
	// NEW ERROR
	// imported three
	// LOADED NORMAL
}

// In a Group an engine is a service: it claims by itself, and a shutdown of the Group sends its tasks back.
func ExampleEngine_Setup() {
	kinds := map[string]stage.Kind{"nap": {Chain: stage.Begin("TIRED").Then("ASLEEP", "sleep", "AWAKE")}}
	asleep := make(chan bool, 1)
	sleep := func(ctx context.Context, t *store.Task) (store.Commit, error) {
		asleep <- true
		select {
		case <-time.After(time.Hour):
			return nil, nil
		case <-ctx.Done():
			return nil, stage.CheckSuspended(ctx)
		}
	}
	engine := must(stage.New(stage.Config{
		Store:      memory.New(nil),
		Kinds:      kinds,
		Processors: map[string]stage.Processor{"sleep": sleep},
	}))
	id, _ := engine.Enqueue(context.Background(), "nap", nil)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asleep
		t, _ := engine.Store().Get(ctx, id)
		fmt.Println(t.Stage, t.Status)
		cancel()
	}()
	fmt.Println(act.Run(ctx, act.Config{}, engine.Setup))
	t, _ := engine.Store().Get(context.Background(), id)
	fmt.Println(t.Stage, t.Status)
	// Output:
	// ASLEEP IN_PROCESSING
	// <nil>
	// TIRED NORMAL
}
