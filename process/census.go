package process

// census lists the processes that had their first turn on one reactor, wherever they are now. Who ends in its first
// turn is never in it: that makes a brief one cheaper. Before that turn a process is in a queue, on its way there, or
// handed on.
type census struct {
	word  word // locked
	first *core
}

func (x *census) add(c *core) {
	w := lock(&x.word)
	if c.older = x.first; c.older != nil {
		c.older.younger = c
	}
	x.first = c
	x.word.Store(w)
}

func (x *census) remove(c *core) {
	w := lock(&x.word)
	if c.younger != nil {
		c.younger.older = c.older
	} else {
		x.first = c.older
	}
	if c.older != nil {
		c.older.younger = c.younger
	}
	c.younger, c.older = nil, nil
	x.word.Store(w)
}

// all returns those who are there.
func (x *census) all() (all []*core) {
	w := lock(&x.word)
	for c := x.first; c != nil; c = c.older {
		all = append(all, c)
	}
	x.word.Store(w)
	return all
}

// enlist gives c, which has survived its first turn here, its place among all. An order may have been given to all
// before that.
func (r *reactor) enlist(c *core) {
	i := r.s.Index()
	c.home = uint32(i) + 1
	r.sys.census[i].add(c)
	c.remind()
}

// strike is the end of enlist.
func (c *core) strike() {
	if c.home > 0 {
		c.sys.census[c.home-1].remove(c)
	}
}

// remind has c, whose turn it is, told of the order that is in force, if it wants to be, and has not been.
func (c *core) remind() {
	if c.stops && c.news() != nil {
		c.call(unheard, nil)
	}
}

// news is the order in force where c is listed, or has its first turn, if c has not heard of it. It is for its turns.
func (c *core) news() *standing {
	r := c.on
	if c.home > 0 {
		r = c.sys.reactors[c.home-1]
	}
	if o := r.order.Load(); o != nil && c.heard != o.number {
		return o
	}
	return nil
}
