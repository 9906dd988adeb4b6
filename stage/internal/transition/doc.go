// Package transition has the rules by which a task of package stage changes: for each method of a store.Store, when it
// is allowed and what it does to the task. They are pure functions of a task and a time. The stores in memory and in
// SQLite apply them. The store in PostgreSQL applies the rules of Return and of requests, and other rules when its
// answer is no. Its statements for a claim, Enter, Finish and Heartbeat repeat the rules as conditions, so that each is
// one message; package storetest compares them with the rules.
//
// A store applies a rule in one transaction: it locks the task, reads it and then the clock, which may have gone on while the
// store waited for the lock, calls the rule, and writes the task unless the rule refuses and leaves it as it is.
//
//	        New                Claim                      Finish, last stage
//	────────────▶ NORMAL ─────────────▶ IN_PROCESSING ─────────────────────────▶ NORMAL, never due
//	              ▲                      │    │
//	              └──── Return ──────────┘    └─ Suspend, Cancel: Wanted. Enter and Finish then refuse,
//	                                             and Return makes it SUSPENDED or CANCELLED,
//	                                             or ERROR if it has failed for good
package transition
