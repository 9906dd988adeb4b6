// Package shutdown is the data of an orderly end: its reason (an [Order]), its terms (a [Policy]), how it goes on (a [Drain]),
// and what was left undone (a [Cut]).
//
// It runs nothing. Package act obeys orders; an application gives them:
//
//	s.Shutdown(shutdown.Policy{}) // the default policy: drain for 30 s, then drop
//
// A [Policy] may let an end come in phases: announced first, and with idle connections that leave one after the other.
//
// An application that wants its actions to know the reason declares an Order of its own. Every action receives that
// value in its Stop method and can read it from its task:
//
//	type Upgrade struct{ Successor string }
//
//	func (Upgrade) Policy() shutdown.Policy { return shutdown.Policy{Kind: shutdown.Unbounded} }
package shutdown
