// Package postgres provides a store.Store that keeps its tasks in a PostgreSQL database: any number of OS processes, on
// any number of machines, share them. The server is PostgreSQL 13 or later; the tests run on 15.
//
//	            ┌─ pool: claims, ends of stages, your queries ─┐
//	a process ──┼─ one connection for heartbeats ──────────────┼──▶ the schema daimon: task, key, …
//	            └─ one that listens, for each engine ◀ NOTIFY ─┘
//
// A claim, a heartbeat, Enqueue and Enter are one message each, whatever the number of tasks; a claim of more than a
// hundred kinds is two. A stage without a store.Commit ends in a statement that it shares with all stages that end at
// the same moment. A stage with a Commit ends in a transaction of two messages, and a third if it sets the data, in
// addition to the messages of the Commit. Requests, and tasks that are given back, take three.
//
// Your own tables go into the same database. [Tx] gives a Commit the transaction in which its stage ends: the rows that it
// writes are there exactly when the stage is. [Store.EnqueueIn] and [Store.EnqueueInSQL] add tasks in a transaction of
// yours, of pgx or of database/sql.
//
// Time is the clock of the server, in microseconds, read when the row of the task is locked. A worker whose clock is wrong
// does no harm.
//
// Only Finish with a Commit, Return, requests, and Enqueue with a key wait for a row that another call has locked. They
// wait for no more than three quarters of the time that their context has left, at most 10 s. The server ends such a
// wait, so the call has no late effect. A heartbeat leaves out a task whose Commit is under way.
//
// A task that another process enqueues begins when its hint arrives; without hints, as behind a pooler, when the engine
// polls. A lost task, and one whose enqueuing transaction took longer than a second, is found by a full claim, which
// examines everything that is due. A full claim is followed by a pause of 20 times as long as it took, of 200 ms at
// least and 5 s at most: it takes long while some transaction of the server stays open for minutes, since dead rows
// then stay in the table.
//
// Kinds and stages are UTF-8 without NUL. Engines of other processes get no hints of kinds above 990 bytes.
//
// Errors that pass, such as deadlocks, shutdowns, full disks and lost connections, are tried again: see [Store.Finish].
//
// # Connections
//
// The pool needs two connections, for a claim and the ends of stages, and one more for each Commit at a time and each
// query of yours ([Store.Pool]): stage.Config.Workers + 2 are always enough for an engine. pool_max_conns of the URL
// sets the size; by default it is 4, or the number of CPUs if that is more. In addition to the pool there is a
// connection for heartbeats, which wait for nothing of the pool, and one that listens for each engine that runs. The
// server's max_connections must be enough for all processes.
//
// A connection to a server that has become read-only is closed, so that the next connection finds the new primary: with
// several hosts in the URL, set target_session_attrs=read-write.
//
// A silent connection is given up together with the call on it: a heartbeat after three intervals, a claim after half a
// lease, another call after a lease. pgx takes up to 15 s more to close it, and it keeps its place in the pool
// meanwhile. So does a connection that is being made, for at most 10 s or the connect_timeout of the URL.
//
// Behind a pooler in transaction mode, such as PgBouncer, set Config.Pooler. Then the store uses no features of a
// session.
//
// # Tables
//
// [DDL] shows the tables, and the settings with which they are vacuumed. Open makes them. Change nothing of them while engines
// run. But you may delete tasks that have ended, as Store.Purge and stage.Upkeep.Retention do:
//
//	DELETE FROM daimon.task WHERE due IS NULL AND until IS NULL AND status <> 'SUSPENDED' AND changed < now() - interval '30 days'
//
// With Config.Counts there are the table count and triggers of the table task that keep it. To end that, drop the triggers
// count_insert, count_update, count_delete and count_truncate while no program is connected.
//
// Keep Task.Data below some KB, and put larger data into a table of your own.
package postgres
