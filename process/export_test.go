package process

import (
	"fmt"
	"slices"
	"strings"
)

// States describes the states of all processes in one line, for a test that hangs.
func (sys *System) States() string {
	counts := map[string]int{}
	for i := range sys.registries {
		for _, c := range sys.registries[i].processes() {
			counts[c.describe()]++
		}
	}
	var all []string
	for what, n := range counts {
		all = append(all, fmt.Sprintf("%d × %s", n, what))
	}
	slices.Sort(all)
	for i, r := range sys.runners {
		all = append(all, fmt.Sprintf("%d in the queue of runner %d, idle: %v", r.queue.length(), i, r.idle.Load() != 0))
	}
	return strings.Join(all, "; ")
}

func (c *core) describe() string {
	w := c.word.Load()
	what := map[uint32]string{sleeping: "sleeping", queued: "queued", running: "running", dead: "dead"}[w&states]
	if owner := c.owner.Load(); owner != 0 {
		what += fmt.Sprintf(" on %d", owner-1)
	}
	for _, x := range []struct {
		bit  uint32
		name string
	}{{locked, "locked"}, {mail, "mail"}, {poked, "poked"}, {killed, "killed"}, {orderPending, "order pending"}, {roomWanted, "room wanted"}, {blocked, "blocked"}} {
		if w&x.bit != 0 {
			what += " " + x.name
		}
	}
	return what
}

// Waiters returns the number of waiters for room in the mailbox.
func (to Ref[M]) Waiters() (n int) {
	w := to.p.lock()
	defer to.p.unlock(w)
	if to.p.rare != nil {
		for s := to.p.rare.waiters.first; s != nil; s = s.next {
			n++
		}
	}
	return n
}

// Capacity returns how many messages the memory of the mailbox is for.
func (to Ref[M]) Capacity() int { return cap(to.p.in) + cap(to.p.out) }
