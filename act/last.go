package act

// InstallLast is Install for a demon that ends last of all, such as a service for metrics. During shutdown the demon,
// the tasks spawned in its turns, and their tasks in turn go on without being told, and without a bound of turns, until
// nothing else is left here that keeps Run from returning. Then they are told, and Run waits for them within the bounds
// of the policy.
func (s internals) InstallLast(d Demon) {
	s.admit(d, isDemon|last)
	s.installed++
}

// EndWithOthers makes t end with the others, if it was to end last of all. During shutdown t is told at the beginning
// of its next turn, which this call gives it. It is not called in a turn of t.
func (s internals) EndWithOthers(t *Task) {
	if t.flags&last == 0 || t.state == abandoned { // an abandoned task is no longer counted
		return
	}
	t.flags &^= last
	s.lasts--
	if s.order != nil && !s.lastTold {
		t.flags |= untold
		t.left = s.terms.turns
		t.wake()
	}
}

// tellLast tells the tasks that end last to shut down, if nothing else is left.
func (s *Scheduler) tellLast() {
	if s.order == nil || s.lastTold || s.lasts == 0 || s.live+s.installed+s.held-s.exhaustedCount > s.lasts || !s.nothingCame() {
		return
	}
	s.lastTold = true
	s.notify(func(t *Task) bool { return t.flags&last != 0 }, false)
}
