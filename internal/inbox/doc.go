// Package inbox carries things from any goroutine to one consumer without a
// lock, and without telling the consumer: waking it is its owner's business.
// There are two types.
//
//	         bound            one push                takes       order
//	Ring     fixed, false     a compare-and-swap,     one value   of claiming
//	         when full        a store                             a place
//	Stack    none: nodes are  a compare-and-swap      all nodes   of pushing
//	         the callers'                             at once
//
// A Ring is for values that somebody makes, and so has to be bounded. A Stack is
// for what exists already and has something to say about itself, once until it is
// heard: it needs no room, so it can refuse nobody.
//
// Both can be closed, exactly: each push either happened before and is found by
// the consumer, or reports false. Neither allocates or blocks in a push, and a
// consumer may sleep on their Empty without losing a wake-up (see Ring.Empty).
//
// Both are for one consumer, and know no priorities.
package inbox
