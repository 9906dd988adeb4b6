package process

// registry lists the processes that had their first turn on one runner, wherever they are now, for orders and ends. A
// process that ends in its first turn is never listed, which makes a short one a fifth cheaper. Before that turn it is in
// a queue, in transit, or handed a thread.
type registry struct {
	word word // locked
	cores
	at *core // the next one to visit, see next
}

func (x *registry) add(c *core) {
	w := lock(&x.word)
	x.append(c, registryLinks)
	x.word.Store(w)
}

func (x *registry) remove(c *core) {
	w := lock(&x.word)
	if x.at == c {
		x.at = c.links[registryLinks].next
	}
	x.cores.remove(c, registryLinks)
	x.word.Store(w)
}

// next returns one process after the other, from the first if again is set, and then nil.
func (x *registry) next(again bool) *core {
	w := lock(&x.word)
	if again {
		x.at = x.first
	}
	c := x.at
	if c != nil {
		x.at = c.links[registryLinks].next
	}
	x.word.Store(w)
	return c
}

func (x *registry) processes() []*core {
	w := lock(&x.word)
	all := x.all(registryLinks)
	x.word.Store(w)
	return all
}
