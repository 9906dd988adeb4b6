// Package transition has the rules by which a task of package stage changes: for each method of a store.Store, when it
// is allowed and what it does to the task. They are pure functions of a task and a time. The stores in memory and in
// SQLite apply them. The store in PostgreSQL applies the rules of Return and of requests, and other rules when its
// answer is no. Its statements for a claim, Enter, Finish and Heartbeat repeat the rules as conditions, so that each is
// one message. Package storetest compares them with the rules: the same random histories go through both, and tables
// have each call in each condition of a task.
//
// A store applies a rule in four steps, in one transaction:
//
//  1. lock the task, so that no other transition of it can run;
//  2. read the task, and only then the clock, which may have gone on while the store waited for the lock;
//  3. call the rule, which changes the task in memory, or refuses and leaves it as it is;
//  4. write the task if the rule has changed it.
//
// A store may do steps 2 to 4 for many tasks at once, and may keep a field where it likes: the end of a lease, for
// example, outside of the index that claims read.
//
//	        New                Claim                      Finish, last stage
//	────────────▶ NORMAL ─────────────▶ IN_PROCESSING ─────────────────────────▶ NORMAL, never due
//	              ▲                      │    │
//	              └──── Return ──────────┘    └─ Suspend, Cancel: Wanted. Enter and Finish then refuse,
//	                                             and Return makes it SUSPENDED or CANCELLED,
//	                                             or ERROR if it has failed for good
package transition
