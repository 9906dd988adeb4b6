// Package sqlite has the stage.Store that keeps its tasks in an SQLite database: one file, no server, any number of
// processes on the machine. It is the one to begin with when tasks have to survive the process.
//
//	                    ┌─ one connection that writes, BEGIN IMMEDIATE: the transitions, Update
//	Store, a process ───┤                                                                       ├──▶ tasks.db, -wal, -shm
//	                    └─ a few that only read: Get, List, DB ────────────────────────────────┘
//
// Each transition is one transaction, a Claim or a Heartbeat of many tasks, too. The database is in WAL mode: whoever
// reads is not held up by who writes. Of all processes one writes at a time, and the others wait, for Config.Busy at
// most; a Store does some thousand transitions a second at best. So a Commit should do nothing but write: while it
// runs nobody's leases are renewed, and one that takes longer than a lease costs others theirs. A process that is
// killed in the middle of a write leaves nothing behind; one that is stopped there (SIGSTOP, a debugger) keeps all
// others from writing until it goes on or is killed.
//
// What is yours goes into the same file. [SQL] gives a stage.Commit the transaction in which its stage ends: the rows
// that it writes are there exactly when the stage is. [Store.Update] makes your tables and changes them otherwise, and
// [Store.DB] reads. [Store.EnqueueIn] adds a task in the transaction of either, so that it is there exactly if your
// rows are.
//
// Tables of this package have names that begin with daimon_: daimon_task has the tasks, in a form that can be read with
// the sqlite3 program; [Migrations] shows it. Tasks that do not run, and so have no time at which they are due, may be
// deleted there when they are no longer of interest, with Store.Update:
//
//	DELETE FROM daimon_task WHERE due IS NULL AND status <> 'SUSPENDED' AND changed < ?
//
// Nothing else of ours may be changed while engines run.
//
// All time is the clock of SQLite, which is that of the machine, in milliseconds. When somebody sets it forward, leases
// end early: whoever has held one finds it lost, and can change nothing. When somebody sets it back, leases last longer,
// and new tasks that are there already wait until it has caught up, as all others that were to be due before; one that
// is suspended and then resumed is due now. Do not put the file on a network file system: WAL needs memory that all
// processes share.
//
// Keep Task.Data short, as far as some KB: it lies in the row that every transition writes anew. What is large is
// better off in a table of yours.
package sqlite
