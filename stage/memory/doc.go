// Package memory provides a store.Store that keeps its tasks in memory: for tests, for simulation, and for work that
// need not survive the OS process.
//
// A transition costs O(log n), a Claim that and the number of its kinds with due tasks for each task that it gives, and a List
// or a Purge O(n). Tasks that have ended are kept until a Purge: see stage.Upkeep.Retention. The store starts no goroutine and need not be closed.
package memory
