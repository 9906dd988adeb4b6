// Package sqlite provides a store.Store that keeps its tasks in an SQLite database: one file, no server, any number of
// OS processes on the machine. Begin with it when tasks have to survive the process.
//
//	                    ┌─ one connection that writes, BEGIN IMMEDIATE: the transitions, Update
//	Store, a process ───┤                                                                       ├──▶ tasks.db, -wal, -shm
//	                    └─ four that only read: Get, List, DB ─────────────────────────────────┘
//
// Each transition is one transaction, even a Claim or a Heartbeat of many tasks. The database is in WAL mode: readers
// do not wait for writers. Of all processes one writes at a time, and the others wait, for Config.Busy at most; a Store
// does some thousand transitions a second at best. So a Commit should do nothing but write: while it runs no lease is
// renewed, and if it takes longer than a lease, other workers lose their leases. If a process is killed in the middle
// of a write, the write is rolled back. If it is stopped there (SIGSTOP, a debugger), no other process can write until
// it continues or is killed.
//
// Your own tables go into the same file. [Tx] gives a store.Commit the transaction in which its stage ends: the rows
// that it writes are there exactly when the stage is. [Store.Update] makes and changes your tables otherwise, and
// [Store.DB] reads. [Store.EnqueueIn] adds tasks in the transaction of either.
//
// The tables of this package have names that begin with daimon_. daimon_task has the tasks, in a form that the sqlite3
// program can read; schema.sql, in the source of this package, explains it. Change nothing of these tables while engines
// run. But you may delete tasks that have ended with Store.Update, as Store.Purge and stage.Upkeep.Retention do:
//
//	DELETE FROM daimon_task WHERE due IS NULL AND status <> 'SUSPENDED' AND changed < ?
//
// With Config.Counts there are daimon_count and triggers that keep it. To end that, drop the triggers daimon_count_insert,
// daimon_count_update and daimon_count_delete while no program has the file open.
//
// Time is the clock of the machine, in milliseconds, read when the database is locked. When it is set forward, leases
// end early: their holders find them lost, and can change nothing. When it is set back, leases last longer, and
// existing tasks, even new ones, wait until it has caught up. Do not put the file on a network file system: WAL needs
// memory that all processes share.
//
// Keep Task.Data below some KB: it is in the row that every transition writes anew. Put larger data into a table of
// your own.
package sqlite
