// Package store defines the interface between a [stage.Engine] and the database that keeps its tasks: [Store], with the
// [Task] and its [Status]. Programs use the stores of package memory and of the modules stage/sqlite and
// stage/postgres.
//
// Processors get a [Task] and return a [Commit]. To read tasks, call Get, List, Failures and Counts of the Store. Most
// other methods are the protocol of engines: Claim gives tasks to a worker under leases, Enter and Finish move a task
// along its chain, Return gives it back, and Heartbeat renews the leases.
//
// A store of your own implements [Store], and perhaps [Watcher], and passes the tests of package storetest.
//
// [stage.Engine]: https://pkg.go.dev/github.com/daimon-go/daimon/stage#Engine
package store
