package stage

import (
	"context"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// Upkeep configures what running engines do in addition to working on tasks: they enqueue periodic tasks and delete old
// ones. With the zero Upkeep there are no periodic tasks, and old tasks are kept.
type Upkeep struct {
	// Periodic has tasks that are enqueued again and again, by their names. A name is UTF-8 without NUL, of at most store.MaxKey
	// bytes. bench/README.md says what thousands of them cost.
	Periodic map[string]Periodic

	// Retention says how long ended tasks are kept, by their status: store.Normal for finished tasks, store.Canceled,
	// and store.Failed for tasks that have failed for good. An engine that runs deletes tasks that ended longer ago,
	// even of kinds that it does not know, 1000 in a call of the store. It polls for them once a minute, or after a
	// tenth of the duration if that is less, but not more often than Config.Poll. The interval varies as Poll does.
	// Tasks in a status without an entry are kept until Purge of the Store. Any number of engines may have a Retention.
	//
	// A task that is deleted loses its Key, and Engine.Result returns store.ErrNotFound. So keep tasks for longer than
	// their Within, and than callers may repeat an Enqueue. Keep them also for longer than callers take to ask for the
	// Result, plus one and a half times Config.Poll.
	Retention map[store.Status]time.Duration
}

func (u Upkeep) check(say require, kinds map[string]Kind) {
	for name, p := range u.Periodic {
		say(name != "" && len(name) <= store.MaxKey && storable(name),
			"Periodic has a name that is not UTF-8 without NUL of 1 to %d bytes: %q", store.MaxKey, name)
		p.check(say.of("Periodic[%q].", name), kinds)
	}
	for status, age := range u.Retention {
		ends := status == store.Normal || status == store.Canceled || status == store.Failed
		say(ends, "Retention has a status in which no task ends: %q", status)
		say(age >= 0, "Retention[%q] is negative: %v", status, age)
	}
}

const (
	mostPurged = 1000        // in a call of the store
	purgeEvery = time.Minute // at most between two
)

// retaining returns the function of a poller that deletes tasks that have ended in a status.
func (e *Engine) retaining(s store.Status) func(context.Context) (time.Duration, error) {
	age := e.cfg.Upkeep.Retention[s]
	every := max(e.cfg.Poll, min(purgeEvery, age/10))
	return func(ctx context.Context) (time.Duration, error) {
		n, err := e.cfg.Store.Purge(ctx, s, age, mostPurged)
		if err != nil {
			return 0, err
		}
		e.answered()
		if n == mostPurged {
			return 0, nil
		}
		return e.varied(every), nil
	}
}
