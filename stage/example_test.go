package stage_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

func ExampleChain() {
	chain := stage.Begin("CREATED").
		Then("LOADING_DATA", "load", "DATA_LOADED").
		Then("BUILDING_REPORT", "build", "FINISHED")
	for _, s := range chain.Stages() {
		fmt.Printf("%s %q\n", s.Name, s.Processor)
	}

	_, err := stage.New(stage.Config{
		Store:    memory.New(nil),
		Provider: stage.Processors{},
		Chains:   map[string]*stage.Chain{"report": stage.Begin("CREATED").Then("LOADING_DATA", "", "CREATED")},
	})
	fmt.Println(err)
	// Output:
	// CREATED ""
	// LOADING_DATA "load"
	// DATA_LOADED ""
	// BUILDING_REPORT "build"
	// FINISHED ""
	// stage: Config.Chains: the chain for "report" has no processor for the dynamic stage "LOADING_DATA"
	// stage: Config.Chains: the chain for "report" has CREATED twice
}

// reports has two processors. One waits for paper the first time.
func reports() (map[string]*stage.Chain, stage.Processors) {
	chain := stage.Begin("CREATED").
		Then("LOADING_DATA", "load", "DATA_LOADED").
		Then("BUILDING_REPORT", "build", "FINISHED")
	load := func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		data := append(t.Data, ", loaded"...)               // computed first,
		return func(_ context.Context, tx stage.Tx) error { // written last, together with DATA_LOADED
			tx.SetData(data)
			return nil
		}, nil
	}
	paper := false
	build := func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		if !paper {
			paper = true
			return nil, stage.Permanent(errors.New("out of paper"))
		}
		return func(_ context.Context, tx stage.Tx) error {
			tx.SetData(append(t.Data, ", built"...))
			return nil
		}, nil
	}
	return map[string]*stage.Chain{"report": chain},
		stage.Processors{"load": stage.ProcessorFunc(load), "build": stage.ProcessorFunc(build)}
}

// An engine without Run works on what Fire claims, and does nothing else.
func ExampleEngine() {
	chains, processors := reports()
	engine, err := stage.New(stage.Config{Store: memory.New(nil), Chains: chains, Provider: processors})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	id, _ := engine.Enqueue(ctx, "report", []byte("sales"))
	show := func(did string) {
		t, _ := engine.Get(ctx, id)
		fmt.Printf("%-10s %s, %s: %s\n", did, t.Stage, t.Status, t.Data)
		if t.Failure != "" {
			fmt.Println("because of", t.Failure)
		}
	}
	show("enqueued:")
	work := func() {
		_, _ = engine.Fire(ctx)
		_ = engine.Wait(ctx)
	}
	_, _ = engine.Suspend(ctx, id)
	work()
	show("suspended:")
	_, _ = engine.Resume(ctx, id)
	show("resumed:")
	work()
	show("fired:")
	_, _ = engine.ResumeFailed(ctx, id)
	work()
	show("fired:")
	// Output:
	// enqueued:  CREATED, NORMAL: sales
	// suspended: CREATED, SUSPENDED: sales
	// resumed:   CREATED, RESUMED: sales
	// fired:     DATA_LOADED, ERROR: sales, loaded
	// because of out of paper
	// fired:     FINISHED, NORMAL: sales, loaded, built
}

// Ended tells the program that enqueues tasks how each of them has ended.
func ExampleConfig_ended() {
	chains, processors := reports()
	engine, err := stage.New(stage.Config{
		Store: memory.New(nil), Chains: chains, Provider: processors,
		Ended: func(t stage.Task) {
			if t.Finished() {
				fmt.Println(t.String(), "has finished")
			} else {
				fmt.Println(t.String(), "has ended:", t.Status, t.Failure)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 2 { // the first fails, since there is no paper
		_, _ = engine.Enqueue(ctx, "report", nil)
		_, _ = engine.Fire(ctx)
		_ = engine.Wait(ctx)
	}
	// Output:
	// report 1 has ended: ERROR out of paper
	// report 2 has finished
}

// In a Group an engine is a service: it claims by itself, and an order to the Group sends its tasks back.
func ExampleEngine_Setup() {
	chains := map[string]*stage.Chain{"nap": stage.Begin("TIRED").Then("ASLEEP", "sleep", "AWAKE")}
	asleep := make(chan bool, 1)
	sleep := func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		asleep <- true
		select {
		case <-time.After(time.Hour):
			return nil, nil
		case <-ctx.Done():
			return nil, stage.CheckSuspended(ctx)
		}
	}
	engine, err := stage.New(stage.Config{
		Store:    memory.New(nil),
		Chains:   chains,
		Provider: stage.Processors{"sleep": stage.ProcessorFunc(sleep)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, _ := engine.Enqueue(context.Background(), "nap", nil)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asleep
		t, _ := engine.Get(ctx, id)
		fmt.Println(t.Stage, t.Status)
		cancel()
	}()
	fmt.Println(act.Run(ctx, act.Config{}, engine.Setup))
	t, _ := engine.Get(context.Background(), id)
	fmt.Println(t.Stage, t.Status)
	// Output:
	// ASLEEP IN_PROCESSING
	// <nil>
	// TIRED NORMAL
}
