// Package stage does background work in stages whose results are stored. It is a job queue whose jobs are checkpointed
// workflows: a task goes along a [Chain] of stages, and the result of each stage is stored before the next begins. A
// task can be suspended, resumed and cancelled from anywhere while it runs. When its OS process dies, another one
// continues it after the last finished stage.
//
//	CREATED ──LOADING_DATA──▶ DATA_LOADED ──BUILDING_REPORT──▶ FINISHED
//	 static     dynamic          static         dynamic         static
//
// A static stage is a stored result. A dynamic stage is work under way, which all readers of the store can see. The task
// then reaches the next static stage, or goes back to the one before. In addition to the stage a task has a
// [store.Status], such as InProcessing or Suspended.
//
//	chain := stage.Begin("CREATED").
//		Then("LOADING_DATA", "load", "DATA_LOADED").
//		Then("BUILDING_REPORT", "build", "FINISHED")
//	engine, err := stage.New(stage.Config{
//		Store:      s, // of package memory, or of module stage/sqlite or stage/postgres
//		Kinds:      map[string]stage.Kind{"report": {Chain: chain}},
//		Processors: map[string]stage.Processor{"load": load, "build": build},
//	})
//	id, err := engine.Enqueue(ctx, "report", data)
//	err = engine.Run(ctx)
//
// An [Engine] claims tasks and calls processors for them, on goroutines ([Engine.Run]) or as a service of a Group
// ([Engine.Setup]). Any number of engines, in any number of processes, share a [store.Store]. A program that only adds,
// suspends, resumes, cancels or lists tasks, or waits for them, uses an Engine that does not run.
//
// A goroutine waits for the end of a task, and gets its result, with [Engine.Result] and [Typed.Result]; actions,
// coroutines and actors (package process) use [Engine.Future]. [Config.OnEnd] is called when a task has ended under an
// engine. docs/coming-from.md compares the names of all features with River and asynq.
//
// # What is promised
//
// Each transition of a task is one transaction: a claim, the beginning of a dynamic stage, its end, and a return to the
// last static stage. A processor computes first and writes last: it returns a function, which is called in the
// transaction that also makes the static stage visible. So its rows are there exactly when the stage is. Each stage of
// a task finishes once.
//
// A worker that claims a task holds a lease, which heartbeats renew: it keeps the task however long a stage takes. A worker
// whose lease has ended can change nothing: each change is guarded by the fencing token of its claim, and by the store's
// clock. Another worker then claims the task at its last static stage. The stage that was lost counts as an attempt, so a
// task that kills its workers is not tried for ever.
//
// When Suspend or Cancel has returned true, no stage of the task finishes before Resume. A processor that is at work
// learns of it with the next heartbeat at the latest ([CheckSuspended]). Its stage is rolled back even if it goes on.
//
// An Enqueue whose answer was lost may have added its tasks. With a Key ([store.NewTask]) it may be repeated, for as
// long as these are kept. Each tick of a [Periodic] task is run once, by whichever engine, unless the store's clock is set
// back far.
//
// A stage may begin more than once: after a crash, a failure, or a suspension. So effects of a processor outside of its
// transaction, such as mail that it sends, may happen more than once. A processor that does not return when its context
// has ended keeps its place among the Workers until it does; Stop names it.
//
// # Releases
//
// The chains of kinds may change from one release to the next, even while engines of both run. A task continues from
// its stored stage along the chain of the engine that claims it. Stages can be added anywhere. If an engine does not
// know a stage or its processor, that is a failure. The stage is tried again later, perhaps by an engine that knows it.
// So Attempts and Backoff must outlast the change. Before a static stage is removed or renamed, the tasks that rest
// there have to continue ([store.Selection] finds them).
package stage
