package process

// locked is the lowest bit of a word that is also a lock. A lock is held for some nanoseconds, or for as long as it
// takes to list all processes of a runner. No thread waits for one in the kernel.
const locked = 1

// tryLock locks w unless it is locked, and returns what it was.
func tryLock(w *word) (was uint32, ok bool) {
	was = w.Load()
	return was, was&locked == 0 && w.CompareAndSwap(was, was|locked)
}

// lock locks w, and returns what it was, without locked. The next Store into w unlocks it.
func lock(w *word) uint32 {
	for {
		if was, ok := tryLock(w); ok {
			return was
		}
		backOff()
	}
}
