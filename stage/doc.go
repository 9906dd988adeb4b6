// Package stage does background work in stages whose results last. A task goes along a [Chain] of stages, and what
// each of them has brought is there to stay before the next begins; it can be suspended, resumed and cancelled from
// anywhere while it runs; and when its process dies, another goes on where the last stage has ended.
//
//	CREATED ──LOADING_DATA──▶ DATA_LOADED ──BUILDING_REPORT──▶ FINISHED
//	 static     dynamic          static         dynamic         static
//
// A static stage is a lasting result. A dynamic one is work under way, which everybody can see, and which never lasts:
// it becomes the static stage behind it, or goes back to the one before. Beside the stage a task has a [Status], which
// says what is being done about it.
//
//	chain := stage.Begin("CREATED").
//		Then("LOADING_DATA", "load", "DATA_LOADED").
//		Then("BUILDING_REPORT", "build", "FINISHED")
//	engine, err := stage.New(stage.Config{
//		Store:    store, // package memory has one, module stage/sqlite another
//		Chains:   map[string]*stage.Chain{"report": chain},
//		Provider: stage.Processors{"load": load, "build": build},
//	})
//	id, err := engine.Enqueue(ctx, "report", data)
//	err = engine.Run(ctx)
//
// An [Engine] claims tasks and has its processors work on them, on goroutines ([Engine.Run]) or as a service of a
// Group ([Engine.Setup]). Any number of engines, in any number of processes, share a [Store].
//
// Whoever only wants to add, suspend, resume, cancel or look needs no processors and does not run: the methods of the
// Store do, or an Engine that is not told to Run.
//
// # What is promised
//
// A dynamic stage is entered, and a task goes back, in a transaction of its own. A processor computes first and writes
// last: what it returns is called in the one transaction that also makes the static stage visible, so its rows are
// there exactly when the stage is. Each stage of a task finishes once.
//
// A claimed task is its worker's for the length of a lease, which heartbeats renew; a living worker keeps it however
// long a stage takes. A worker that was not heard of for that long can change nothing any more: each change is
// guarded by the token of its claim, and by the store's clock. The task is then claimed by another, from its last
// static stage, and the stage that was lost counts as an attempt: what kills its workers does not do so for ever.
//
// When Suspend or Cancel has returned true no stage of the task finishes before Resume. One that is being worked on
// hears of it with the next heartbeat at the latest ([CheckSuspended]), and is rolled back even if it does not listen.
//
// A stage may begin more than once: after a crash, a failure, a suspension. What a processor does outside of its
// transaction has to bear that. One that does not return when its context has ended keeps its place among the Workers
// until it does; Stop names it.
//
// # Releases
//
// Chains may change from one release to the next, also while engines of both run: a task goes on from its stored stage
// along the chain of whoever claims it. Stages can be added anywhere. An engine that does not know a stage, or its
// processor, makes it a failure, which is tried again later, perhaps by an engine that does; so Attempts and Backoff
// must outlast the change. Before a static stage is taken away or renamed, the tasks that rest there have to go on
// ([Filter] finds them).
//
// # What it is not
//
// A job queue: there are no priorities, no schedules, no results that are fetched. Finished tasks stay in the store
// until somebody deletes them.
package stage
