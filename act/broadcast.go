package act

import "slices"

// Broadcast calls f once on each scheduler of the Group, in parallel, as if it were posted to each (see
// [Scheduler.Post]): on all of them or, after an error, on none. All broadcasts of a Group come in the same order on
// each scheduler, and after what the caller has posted before. If an inbox is full, Broadcast waits on a plain
// goroutine, and returns a [Blocked] on a scheduler's thread. If a scheduler is closed, it returns [ErrClosed]. Any
// goroutine.
func (g *Group) Broadcast(f func(*Scheduler)) error { return g.broadcast(f, true, nil) }

// BroadcastTo is [Group.Broadcast] to the schedulers that are in at least one of the audiences, once to each; without
// any it does nothing. A nil Audience is empty. Schedulers that are in none are not woken, and their inboxes may be
// full. Any goroutine.
func (g *Group) BroadcastTo(f func(*Scheduler), to ...*Audience) error {
	return g.broadcast(f, false, to)
}

// An Audience is the set of schedulers of a Group that have receivers of something, such as the subscribers of one topic: see
// [Group.BroadcastTo]. The zero Audience is empty. It must not be copied, and is for one Group. Any goroutine.
type Audience struct {
	group *Group
	of    []int // receivers, by the index of their scheduler; under Group.broadcasting
}

// Join adds a receiver on s. After Join has returned, broadcasts to a reach s, until Leave was called as often as Join.
// It panics if s is of another Group than earlier receivers. Any goroutine.
func (a *Audience) Join(s *Scheduler) {
	s.group.broadcasting.Lock()
	defer s.group.broadcasting.Unlock()
	if a.group == nil {
		a.group, a.of = s.group, make([]int, len(s.group.schedulers))
	}
	if a.group != s.group {
		panic("act: an Audience of one Group was joined by a Scheduler of another")
	}
	a.of[s.index]++
}

// Leave removes a receiver on s, and reports whether no receiver is left on any scheduler, so that a may be forgotten.
// Earlier broadcasts may still reach s. Leave panics if there is no receiver on s. Any goroutine.
func (a *Audience) Leave(s *Scheduler) (empty bool) {
	s.group.broadcasting.Lock()
	defer s.group.broadcasting.Unlock()
	if a.group != s.group || a.of[s.index] == 0 {
		panic("act: an Audience was left more often than joined")
	}
	a.of[s.index]--
	return !slices.ContainsFunc(a.of, func(n int) bool { return n > 0 })
}

// has reports whether s is in a. It is called with the lock.
func (a *Audience) has(s *Scheduler) bool { return a != nil && a.group == s.group && a.of[s.index] > 0 }

// broadcast posts f to all schedulers, or to the ones of some audiences, and waits for room.
func (g *Group) broadcast(f func(*Scheduler), all bool, to []*Audience) error {
	if f == nil {
		panic("act: Broadcast of a nil function")
	}
	for {
		full, err := g.tryBroadcast(f, all, to)
		if full == nil {
			return err
		}
		if threads.here() {
			return (*fullInbox)(full)
		}
		full.room.Wait(full.posts.Full)
	}
}

// tryBroadcast posts f if all receivers have room. Otherwise it returns one that has none, or an error.
func (g *Group) tryBroadcast(f func(*Scheduler), all bool, to []*Audience) (full *Scheduler, err error) {
	g.broadcasting.Lock()
	defer g.broadcasting.Unlock()
	receivers := g.receivers[:0]
	for _, s := range g.schedulers {
		if !all && !slices.ContainsFunc(to, func(a *Audience) bool { return a.has(s) }) {
			continue
		}
		if s.posts.Full() { // mostly this decides, and no place is wasted
			return s, nil
		}
		receivers = append(receivers, s)
	}
	claimed := g.places[:0]
	for _, s := range receivers {
		place, ok := s.posts.Claim()
		if !ok {
			f, full = nil, s // runPosts skips it
			break
		}
		claimed = append(claimed, place)
	}
	for i, place := range claimed {
		receivers[i].posts.Fill(place, f)
		receivers[i].interrupt()
	}
	if full != nil && full.posts.Closed() {
		return nil, ErrClosed
	}
	return full, nil
}
