// Package store has what passes between the [stage.Engine] and the database that keeps its tasks: the [Task], its [Status], and the
// interface [Store]. Programs use the stores of package memory and of the modules stage/sqlite and stage/postgres.
//
// Processors get a [Task] and return a [Commit]. To look at tasks, call Get, List, Failures and Counts of the Store, and to add
// tasks of several kinds in one call, Enqueue. The other methods are the protocol of engines: a claim gives tasks to a worker under
// leases, Enter and Finish make a task's way along its chain, Return gives it back, and Heartbeat renews the leases.
//
// A store of your own implements [Store], and perhaps [Watcher], and passes the tests of package storetest.
//
// [stage.Engine]: https://pkg.go.dev/github.com/daimon-go/daimon/stage#Engine
package store
