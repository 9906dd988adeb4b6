package process

// census lists the processes that were made on one reactor, wherever they are now.
type census struct {
	word  word // 1: locked
	first *core
	made  uint64
	ended uint64
}

func (x *census) lock() {
	for looks := 0; !x.word.CompareAndSwap(0, 1); looks++ {
		patience(looks)
	}
}

func (x *census) unlock() { x.word.Store(0) }

// add gives c its place, and its number.
func (x *census) add(c *core, home, of int) {
	x.lock()
	defer x.unlock()
	c.home = uint32(home)
	c.id = x.made*uint64(of) + uint64(home) + 1
	x.made++
	if c.older = x.first; c.older != nil {
		c.older.younger = c
	}
	x.first = c
}

func (x *census) remove(c *core) {
	x.lock()
	defer x.unlock()
	if c.younger != nil {
		c.younger.older = c.older
	} else {
		x.first = c.older
	}
	if c.older != nil {
		c.older.younger = c.younger
	}
	c.younger, c.older = nil, nil
	x.ended++
}

func (x *census) counts() (made, ended uint64) {
	x.lock()
	defer x.unlock()
	return x.made, x.ended
}

// all returns those who are there.
func (x *census) all() (all []*core) {
	x.lock()
	defer x.unlock()
	for c := x.first; c != nil; c = c.older {
		all = append(all, c)
	}
	return all
}

// admit counts a new process in.
func (sys *System) admit(c *core, r *reactor) {
	if sys.closed.Load() != 0 {
		panic("process: Spawn on a closed System")
	}
	if !sys.joined.Load() {
		panic("process: Spawn before Setup")
	}
	home := 0
	if r != nil {
		home = r.s.Index()
	} else {
		home = int(sys.foreign.turn.Load() % uint32(len(sys.reactors)))
	}
	sys.census[home].add(c, home, len(sys.reactors))
	if sys.order.Load() != nil && c.stops {
		c.call(told)
	}
}
