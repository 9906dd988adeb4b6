// Package inbox passes values from any goroutine to one consumer without a lock. It does not wake the consumer. There are
// two types.
//
//	         bound            one push                takes       order
//	Ring     fixed, false     a compare-and-swap,     one value   of claiming
//	         when full        a store                             a place
//	Stack    none: nodes are  a compare-and-swap      all nodes   of pushing
//	         the callers'                             at once
//
// A Ring is for new values, of which there may be any number, and so has to be bounded. A Stack is for objects that exist
// already and are in it at most once: each brings its own node, so a push is never refused for lack of room.
//
// A Room is where producers wait for room in a Ring.
//
// Both types can be closed, exactly: each push either happened before and is found by the consumer, or reports false. A push
// neither allocates nor blocks. A consumer may sleep when Empty returns true, without losing a wake-up (see Ring.Empty).
package inbox
