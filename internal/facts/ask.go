package facts

import (
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// Served is an action that belongs to a service.
type Served interface {
	Service() string // its name, such as "tcp 127.0.0.1:8080"
}

// Connected is an action that serves a connection. The methods may be called in its turn, while a function runs that it has
// offloaded, and when it has failed. Only Peer makes a system call.
type Connected interface {
	Peer() string         // the address of the other end; "": not known
	Descriptor() int      // of a file; -1: none
	Still() time.Duration // for how long no byte has gone either way; less than 0: not known
	Undisturbed() bool    // it is not to know of a shutdown: Task.Order returns nil. Its own Stop is called
}

// What the value of an act.Local may be in addition to an io.Closer.
type (
	// An Accounter keeps Run from returning for something of its own. Account counts and names that in c, whose Order is in
	// force, and returns how much of the count of KeepRunning is for it. It is called at the end of Run, before anything is
	// dropped.
	Accounter interface {
		Account(c *shutdown.Cut) (holds int)
	}

	// A Leaver has to do with values of other schedulers. Leave is called at the end of Run, which other schedulers may
	// not have reached, and when a shutdown ends in Step: nothing has a turn here before the next Run or Step, or ever,
	// if the scheduler is broken.
	Leaver interface{ Leave() }

	// A Dropper has work without a task. Drop ends it, when a shutdown drops what is left.
	Dropper interface{ Drop() }

	// A Lingerer has connections that were closed but still exist: their last bytes are on their way, or their peers
	// have not closed. EachClosing calls visit for the ones in n places, starting at from, with how long no byte has
	// gone either way, and an act.Describer. It returns where to go on, 0 at the end.
	Lingerer interface {
		EachClosing(from, n int, visit func(still time.Duration, x any)) (next int)
	}

	// A Counter calls add for each of its counts. A name has lower-case words with underscores; one that ends in _total
	// only grows, any other is the present number. Counts of one name are added up, across schedulers too.
	Counter interface {
		Counts(add func(name string, n uint64))
	}
)
