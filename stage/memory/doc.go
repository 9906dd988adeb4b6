// Package memory has the stage.Store that keeps its tasks in memory: for tests, for simulation, and for work that need
// not survive the process.
//
//	engine's calls ──▶ Store: one lock ──▶ tasks, by number
//	                                  └──▶ what is due some time: for each kind a heap, the longest due on top
//
// A Claim costs O(log n) for each task that it gives, any other transition O(log n), a List O(n). No task is ever
// forgotten: a process that goes on for long with many tasks wants a store on disk. There are no goroutines, and
// nothing has to be closed.
package memory
