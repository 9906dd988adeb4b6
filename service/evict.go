package service

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
)

const (
	// idleFor is how long a connection must have been idle by default before it may be closed to make room.
	idleFor = 500 * time.Millisecond
	// mostFound bounds how many idle connections one search keeps, so that a crowd of clients does not cost a search each.
	mostFound = 64
)

// idler is an action that knows when its connection can be closed without loss, and since when.
type idler interface {
	IdleSince() (since time.Duration, idle bool)
}

// found is a connection that was idle at the time of the search.
type found struct {
	task    *act.Task
	session *session
	since   time.Duration
}

// makeRoom evicts the connection that has been idle for longest if a client waits that cannot be accepted. It searches
// the tasks and keeps no sorted list: a list would cost each connection memory, and each message time.
func (a *acceptor) makeRoom(t *act.Task) {
	if a.ordered || a.config.evictAfter < 0 || !a.from.Crowded() {
		return
	}
	if !a.evict() {
		if b := a.server.another(a); b != nil {
			_ = b.home.Post(func(*act.Scheduler) { b.evict() }) // if its inbox is full, it is asked again later
		}
	}
	t.WakeAfter(&a.again, tryAgain)
}

// evict evicts the connection of this scheduler that has been idle for longest, and reports whether there is one.
func (a *acceptor) evict() bool {
	if a.evictNext() {
		return true
	}
	a.search()
	return a.evictNext()
}

// evictNext evicts the first found connection that has been idle ever since. Connections that became idle later come
// after it.
func (a *acceptor) evictNext() bool {
	for len(a.found) > 0 {
		f := a.found[0]
		a.found = a.found[1:]
		if f.task.Action() != act.Action(f.session) {
			continue
		}
		if since, idle := f.session.idleSince(); idle && since == f.since {
			x := f.session
			x.action = &evicted{Child: act.Child{Action: x.action}, session: x}
			f.task.Waker().Wake()
			return true
		}
	}
	return false
}

// search finds the connections that have been idle for longest, the longest first.
func (a *acceptor) search() {
	after := a.config.evictAfter
	if after == 0 {
		after = idleFor
	}
	latest := a.home.Now() - after
	a.found = a.found[:0:0]
	in := a.home.Internals()
	in.EachTask(1, func(t *act.Task) bool {
		x, ok := t.Action().(*session)
		if !ok || !in.Waiting(t) || !a.config.serves(x) {
			return true
		}
		if since, idle := x.idleSince(); idle && since <= latest {
			a.found = append(a.found, found{t, x, since})
			if len(a.found) == 2*mostFound {
				a.found = first(a.found)
			}
		}
		return true
	})
	a.found = first(a.found)
}

// first sorts all, and returns at most mostFound of them.
func first(all []found) []found {
	slices.SortStableFunc(all, func(x, y found) int { return int(min(max(x.since-y.since, -1), 1)) })
	return all[:min(len(all), mostFound)]
}

// another returns the acceptors of the other schedulers in turn. Each acceptor has its own count: if two that ask
// alternately shared one, both might always come to schedulers that have no idle connection.
func (v *Listener) another(from *acceptor) *acceptor {
	v.mu.Lock()
	others := slices.DeleteFunc(slices.Clone(v.demons), func(a *acceptor) bool { return a == from })
	v.mu.Unlock()
	if len(others) == 0 {
		return nil
	}
	from.asked++
	return others[from.asked%len(others)]
}

// idleSince reports whether the connection may be evicted, and since when.
func (x *session) idleSince() (since time.Duration, idle bool) {
	c := x.config()
	if c == nil {
		return 0, false
	}
	for a := x.action; a != nil; a = x.conn.Scheduler().Internals().Child(a) {
		if i, ok := a.(idler); ok {
			return i.IdleSince()
		}
	}
	if _, filtering := x.action.(*filters); filtering || c.evictAfter <= 0 {
		return 0, false
	}
	return x.conn.IdleSince()
}

// evicted takes the place of a session's action for the turn in which it ends.
type evicted struct {
	act.Child
	session *session
}

// Act closes the connection, unless it is no longer idle: the peer has sent something meanwhile, or another task has
// written to it. It does not linger: nothing is unread, and the kernel has all written bytes.
func (r *evicted) Act(t *act.Task) act.Directive {
	x := r.session
	x.action = r.Action
	_, err := x.conn.Peek(1)
	_, waits := err.(act.Blocked)
	if _, idle := x.idleSince(); !waits || !idle {
		return x.action.Act(t)
	}
	t.Scheduler().Logger().Debug("an idle connection is evicted for another", zap.String("peer", x.Peer()))
	x.config().row.Evicted++
	_ = x.conn.Internals().CloseWithin(0) // an error means that the peer has gone
	return act.Done
}
