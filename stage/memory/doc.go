// Package memory provides a store.Store that keeps its tasks in memory: for tests, for simulation, and for work that
// need not survive the OS process.
//
// A Claim costs O(log n) for each task that it gives, any other transition O(log n), a List or a Purge O(n). Tasks that
// have ended are kept until a Purge: see stage.Upkeep.Retention. The store starts no goroutine and need not be closed.
package memory
