package act

// Broadcast calls f once on each scheduler of the Group, in parallel, as if it were posted to each (see
// [Scheduler.Post]): on all of them or, after an error, on none. All broadcasts of a Group come in the same order on
// each scheduler, and after what the caller has posted before. If an inbox is full, Broadcast waits on a plain
// goroutine, and returns a [Blocked] on a scheduler's thread. If a scheduler is closed, it returns [ErrClosed]. Any
// goroutine. Messages to the subscribers of topics are for package topic.
func (g *Group) Broadcast(f func(*Scheduler)) error {
	if f == nil {
		panic("act: Broadcast of a nil function")
	}
	for {
		full, err := g.tryBroadcast(f)
		if full == nil {
			return err
		}
		if threads.here() {
			return (*fullInbox)(full)
		}
		full.room.Wait(full.posts.Full)
	}
}

// tryBroadcast posts f if all inboxes have room. Otherwise it returns a scheduler without room, or an error.
func (g *Group) tryBroadcast(f func(*Scheduler)) (full *Scheduler, err error) {
	g.broadcasting.Lock()
	defer g.broadcasting.Unlock()
	for _, s := range g.schedulers {
		if s.posts.Full() { // mostly this decides, and no place is wasted
			return s, nil
		}
	}
	claimed := g.places[:0]
	for _, s := range g.schedulers {
		place, ok := s.posts.Claim()
		if !ok {
			f, full = nil, s // runPosts skips it
			break
		}
		claimed = append(claimed, place)
	}
	for i, place := range claimed {
		g.schedulers[i].posts.Fill(place, f)
		g.schedulers[i].interrupt()
	}
	if full != nil && full.posts.Closed() {
		return nil, ErrClosed
	}
	return full, nil
}
