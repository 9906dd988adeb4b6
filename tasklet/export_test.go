package tasklet

import "hash/maphash"

// Retries returns how many entries are to go on when the present phase of t has ended.
func Retries(t Tasklet) int {
	sh := &active[maphash.Comparable(seed, t)%uint64(len(active))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, p := range sh.in {
		if p.tasklet == t {
			return len(p.retry)
		}
	}
	return 0
}
