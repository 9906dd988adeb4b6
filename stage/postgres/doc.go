// Package postgres has the store.Store that keeps its tasks in a PostgreSQL database: any number of processes, on any number
// of machines, share them. Its server is PostgreSQL 13 or later; the tests run on 15.
//
//	            ┌─ pool: claims, ends of stages, your queries ─┐
//	a process ──┼─ one connection for heartbeats ──────────────┼──▶ the schema daimon: task, key, …
//	            └─ one connection that listens ◀── NOTIFY ─────┘
//
// A claim, a heartbeat, Enqueue and Enter are one message each, whatever the number of tasks; a claim of more than a hundred kinds
// is two. A stage without a
// store.Commit ends in a statement that it shares with all stages that end at the same moment. A stage with one ends in a
// transaction of two messages, and a third if it sets the data, beside those of the Commit. Requests, and tasks that are
// given back, take three. Tasks with keys have a statement of their own, one for all that are enqueued in a call.
//
// Your own tables go into the same database. [Tx] gives a Commit the transaction in which its stage ends: the rows that it
// writes are there exactly when the stage is. [Store.EnqueueIn] and [Store.EnqueueInSQL] add tasks in a transaction of
// yours, of pgx or of database/sql.
//
// # Promises
//
// Time is the clock of the server, in microseconds, read when the row of the task is locked. A worker whose clock is wrong
// does no harm.
//
// No call waits for a row that another one has locked but Finish with a Commit, Return, requests, and Enqueue with a key. These
// wait for no more than three quarters of the time that their context has left, at most 10 s. The server ends such a wait, so
// nothing of it comes later. A heartbeat leaves out a task whose Commit is under way.
//
// A task that another process enqueues begins when its hint arrives; without hints, as behind a pooler, when the engine
// polls. A lost task, and one whose enqueuing transaction took longer than a second, is found by a claim that looks at
// everything that is due: the first one that comes 200 ms after the last such look, or 20 times as long as that took. A look
// takes long while some transaction of the server stays open for minutes, since dead rows stay with it. Other claims do not.
//
// Kinds and stages are UTF-8 without NUL. Engines of other processes get no hints of kinds above 990 bytes.
//
// Errors that pass, such as deadlocks, shutdowns, full disks and lost connections, are tried again: see [Store.Finish].
//
// # Connections
//
// The pool needs two connections, for a claim and the ends of stages, and one more for each Commit at a time and each query
// of yours ([Store.Pool]): stage.Config.Workers + 2 are always enough for an engine. pool_max_conns of the URL sets the size;
// by default it is 4, or the number of CPUs if that is more. Beside the pool there are two connections: one for heartbeats,
// which wait for nothing of the pool, and one that listens. The server's max_connections must be enough for all processes.
//
// A connection on which the server lets nothing be written is closed, so that the next one finds the new primary: with several
// hosts in the URL, set target_session_attrs=read-write.
//
// A connection that has become silent is given up when the call on it is: a heartbeat after three intervals, a claim after
// half a lease, another call after a lease. pgx takes up to 15 s more to close it, and it keeps its place in the pool meanwhile.
// So does one that is being made, for at most 10 s or the connect_timeout of the URL.
//
// Behind a pooler in transaction mode, such as PgBouncer, set Config.Pooler. Nothing of a session is used then.
//
// # Tables
//
// [DDL] shows the tables, and the settings with which they are vacuumed. Open makes them. Tasks that have ended
// are deleted with Store.Purge, or stage.Upkeep.Retention. You may also delete them yourself:
//
//	DELETE FROM daimon.task WHERE due IS NULL AND until IS NULL AND status <> 'SUSPENDED' AND changed < now() - interval '30 days'
//
// With a task that is deleted goes its key (store.NewTask): the next one with that key is added.
//
// With Config.Counts there are the table count and triggers of the table task that keep it. To end that, drop the triggers
// count_insert, count_update, count_delete and count_truncate while no program is connected.
//
// Nothing else of these tables may be changed while engines run. Keep Task.Data below some KB: what is larger belongs into a
// table of your own.
package postgres
