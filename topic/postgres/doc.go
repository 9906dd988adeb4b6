// Package postgres connects the topics of many machines by a PostgreSQL database, which programs often have anyway. Its Engine is a
// [topic.Engine]. The server is PostgreSQL 13 or later; the tests run on 15.
//
//	                 ┌─ pool: a batch of publications at a time, histories ─┐
//	a topic.Broker ──┤                                                      ├──▶ the schema daimon_topics: topic, message, …
//	                 └─ one connection that polls for messages ◀ NOTIFY ────┘
//
// A message is a row, whose key is its topic and its offset. It gets the offset under the lock of the row of its topic, which lasts
// until the batch is committed: so offsets have no gap, and all machines see one order. What waits while a batch is stored is
// the next batch.
//
// Each machine reads what has become visible since the snapshot of its previous poll: messages of transactions that have begun
// since, or were running then. So it misses nothing, gets nothing twice, and a long transaction delays nobody else. It polls
// after a hint, and 4 times a second. NOTIFY is the hint, by itself after the commit, from each machine at most 200 times a second.
//
// # Transactions of the program
//
// [Engine.PublishIn] publishes in a transaction of yours: the message is published if the transaction commits. Any other program,
// and a trigger, does the same with the SQL function publish:
//
//	SELECT daimon_topics.publish('orders/7', convert_to(to_jsonb(o)::text, 'UTF8')) FROM orders AS o WHERE id = 7
//
// Such messages go to a table outbox first, and get their offsets after the commit.
//
// # What is kept
//
// Every message is kept for a minute, so that a machine whose connection is lost for less misses nothing. Topics with a History
// keep messages for longer, by the number and the age of their [topic.Rule]: all machines should have the same rules. The
// retained message of a topic stays. A topic without a message for a week is forgotten; then its epoch is another one.
//
// A topic that you delete by hand, with its messages, begins with another epoch. After you have restored a dump, delete all of them:
//
//	TRUNCATE daimon_topics.topic, daimon_topics.message
//
// # Presence
//
// A machine says every 5 s that it is there. When it has not for 15 s, by the clock of the server, another one has its members leave.
// If it was only stopped, they join again when it goes on.
//
// # What goes wrong
//
// A call that has failed for a while is made again, after 10 ms at first and a second at most. An answer is waited for for 10 s. A
// batch has a number, so that it is stored once however often it is sent.
//
//	a connection is lost       another one is made; polls go on where they were. Nothing is lost.
//	a partition, a stopped     what this machine publishes waits: Publish returns an act.Blocked when Config.Pending messages do,
//	server                     and Confirm is not resolved. Subscriptions get nothing, and then everything that is kept. A
//	                           subscription that begins waits. After 15 s the members of this machine have left.
//	COMMIT without an answer   the batch is sent again, and not stored again.
//	a crash of the server      as a partition: synchronous_commit is on.
//	a slow server              batches get larger. One that takes more than 10 s is rolled back and sent again.
//	a full disk, no            as a partition, until it can store again.
//	connection left
//	another primary            topics have another epoch, since the latest messages may be missing: subscriptions that follow are
//	                           told that they have missed something.
//	a machine dies             what it has not stored is lost. Its connections follow on another machine from where they were.
//	data that is refused       Confirm fails.
//
// One line in the log says that the database cannot be reached, and one that it can.
//
// # Connections
//
// There is a pool for each Engine: by default of 4 connections, or as many as there are CPUs; pool_max_conns of the URL is another
// number. One more connection listens. A pooler in transaction mode, such as PgBouncer, cannot be between: connect to the server.
// With several hosts in the URL, target_session_attrs=read-write finds the primary.
//
// schema.sql has the tables. Open makes them.
package postgres
