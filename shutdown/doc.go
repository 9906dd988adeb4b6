// Package shutdown is the data of an orderly end: who asks for it (an [Order]), on what terms (its
// [Policy]), and what had to be left undone (a [Cut]).
//
// It runs nothing. Package act obeys orders; an application gives them:
//
//	s.Shutdown(shutdown.Now{}) // the plain order with the default policy: drain 30 s, then drop
//
// An application that wants its actions to know why the end comes makes a type of its own the
// order. Every action receives that very value in its Stop method and reads it from its task:
//
//	type Upgrade struct{ Successor string }
//
//	func (Upgrade) Policy() shutdown.Policy { return shutdown.Unbounded }
package shutdown
