package act

// letGo is called at the end of Close, and for each abandoned task when its function has returned, whatever comes last. A closed
// Scheduler may be kept for any length of time, by wakers and Groups. It keeps nothing that its actions and services have held.
func (s *Scheduler) letGo() {
	if s.users.Add(-1) > 0 {
		return
	}
	for _, ok := s.posts.Pop(); ok; _, ok = s.posts.Pop() {
	}
	s.self.stopTimers()
	s.locals, s.ends, s.passEnds = nil, nil, nil
	s.order, s.cut, s.halted, s.err, s.broken = nil, nil, nil, nil, nil
	s.idler.Store(nil) // nothing interrupts it any more
}
