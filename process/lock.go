package process

// locked is the lowest bit of a word that is a lock beside whatever else it says. Who meets it looks again, or goes
// elsewhere; nobody waits in the kernel. What is done under one takes some nanoseconds, but for the lists of all that
// orders and ends want.
const locked = 1

// tryLock locks w if nobody else has, and returns it as it was.
func tryLock(w *word) (was uint32, ok bool) {
	was = w.Load()
	return was, was&locked == 0 && w.CompareAndSwap(was, was|locked)
}

// lock locks w, and returns it as it was, without locked. What is stored into it then unlocks it.
func lock(w *word) uint32 {
	for looks := 0; ; looks++ {
		if was, ok := tryLock(w); ok {
			return was
		}
		patience(looks)
	}
}
