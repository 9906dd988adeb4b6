// Package merge combines the unfinished work of the schedulers of a Group to one Cut, and many waiting tasks to the few that a
// report names.
package merge

import (
	"slices"
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// maxNames bounds the different names in a Cut, and the kinds.
const maxNames = 8

// Add adds to c what o counts and names. Of the shutdown requests, c keeps its own if it has one.
func Add(c, o *shutdown.Cut) {
	c.Tasks += o.Tasks
	c.Demons += o.Demons
	c.Offloads += o.Offloads
	c.Lingering += o.Lingering
	c.Processes += o.Processes
	c.Dropped = c.Dropped || o.Dropped
	if c.Order == nil {
		c.Order = o.Order
	}
	c.Names, c.Kinds = added(c.Names, o.Names), added(c.Kinds, o.Kinds)
	for _, l := range o.Left {
		c.Left = Oldest(c.Left, l, leftKey)
	}
}

func leftKey(l *shutdown.Unfinished) (kind string, still time.Duration) { return l.Kind, l.Still }

// added returns the sum of both, of the first maxNames names.
func added(all, more []shutdown.Count) []shutdown.Count {
	for _, n := range more {
		i := slices.IndexFunc(all, func(known shutdown.Count) bool { return known.Name == n.Name })
		switch {
		case i >= 0:
			all[i].N += n.N
		case len(all) < maxNames:
			all = append(all, n)
		}
	}
	return all
}
