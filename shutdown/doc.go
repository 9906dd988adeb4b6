// Package shutdown has the data of a graceful shutdown: the request (an [Order]), how to shut down (a [Policy]), its
// progress (a [Drain]), and what was left unfinished (a [Cut]).
//
// It runs nothing. Package act carries out shutdown requests; an application makes them:
//
//	s.Shutdown(shutdown.Policy{}) // the default policy: drain for 30 s, then drop
//
// A [Policy] may have phases: the shutdown is announced first, and idle connections are closed one after the other.
//
// An application whose actions need to know the reason declares an Order of its own. Every action receives that value
// in its Stop method and can read it with act.Task.Order:
//
//	type Upgrade struct{ Successor string }
//
//	func (Upgrade) Policy() shutdown.Policy { return shutdown.Policy{Kind: shutdown.Unbounded} }
package shutdown
