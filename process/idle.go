package process

// idlers is the stack of reactors that have no process to run. Who has made one ready for another reactor takes the
// one that became idle last, since its caches are the warmest.
//
// A reactor is on it between its look at all queues, which were empty, and whatever wakes it, once: who is woken in
// another way takes itself off. It looks again when it is on it: what was enqueued before somebody could see it here
// is found, what is enqueued afterwards wakes it.
type idlers struct {
	word  word // how many there are, shifted left by one, and locked
	stack []*reactor
	moves uint64 // how often one came or went
}

func (x *idlers) lock() { lock(&x.word) }

func (x *idlers) unlock() { x.word.Store(uint32(len(x.stack)) << 1) }

// any tells whether there is one, or was a moment ago.
func (x *idlers) any() bool { return x.word.Load() > 1 }

// push puts r on the stack.
func (x *idlers) push(r *reactor) (now moment) {
	x.lock()
	defer x.unlock()
	x.stack = append(x.stack, r)
	r.idle.Store(1)
	x.moves++
	return moment{len(x.stack), x.moves}
}

// moment is what the stack looks like; two are equal only if nobody has come or gone between.
type moment struct {
	idle  int
	moves uint64
}

func (x *idlers) now() moment {
	x.lock()
	defer x.unlock()
	return moment{len(x.stack), x.moves}
}

// pop takes the youngest off, which then has to be woken; nil if there is none.
func (x *idlers) pop() *reactor {
	if !x.any() {
		return nil
	}
	x.lock()
	defer x.unlock()
	if len(x.stack) == 0 {
		return nil
	}
	r := x.stack[len(x.stack)-1]
	x.stack = x.stack[:len(x.stack)-1]
	r.idle.Store(0)
	x.moves++
	return r
}

// remove takes r off, if it is there.
func (x *idlers) remove(r *reactor) {
	if r.idle.Load() == 0 {
		return
	}
	x.lock()
	defer x.unlock()
	for i, other := range x.stack {
		if other == r {
			x.stack = append(x.stack[:i], x.stack[i+1:]...)
			r.idle.Store(0)
			x.moves++
			return
		}
	}
}
