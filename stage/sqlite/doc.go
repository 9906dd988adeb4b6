// Package sqlite has the stage.Store that keeps its tasks in an SQLite database: one file, no server, any number of
// processes on the machine. It is the one to begin with when tasks have to survive the process.
//
//	                    ┌─ one connection that writes, BEGIN IMMEDIATE: the transitions, Update
//	Store, a process ───┤                                                                       ├──▶ tasks.db, -wal, -shm
//	                    └─ a few that only read: Get, List, DB ────────────────────────────────┘
//
// Each transition is one transaction, a Claim or a Heartbeat of many tasks, too. The database is in WAL mode: whoever
// reads is not held up by who writes. Of all processes one writes at a time, and the others wait, for Config.Busy at
// most; so a Commit should do nothing but write, and a Store does some thousand transitions a second at best. A process
// that is killed in the middle of a write leaves nothing behind; one that is stopped there (SIGSTOP) keeps the others
// from writing until it goes on or is killed.
//
// What is yours goes into the same file. [SQL] gives a stage.Commit the transaction in which its stage ends: the rows
// that it writes are there exactly when the stage is. [Store.Update] makes your tables and changes them otherwise, and
// [Store.DB] reads. Tables of this package have names that begin with daimon_: daimon_task has the tasks, in a form
// that can be read with the sqlite3 program; [Migrations] shows it.
//
// All time is the clock of SQLite, which is that of the machine, in milliseconds. When somebody sets it forward, leases
// end early: whoever has held one finds it lost, and can change nothing. Do not put the file on a network file system:
// WAL needs memory that all processes share.
//
// Keep Task.Data short, as far as some KB: it lies in the row that every transition writes anew. What is large is
// better off in a table of yours.
package sqlite
