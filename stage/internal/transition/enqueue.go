package transition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/stage/store"
)

// Distinct returns the tasks without any task that has the kind and the key of an earlier one, and for each task its
// place in that list. If none has a key, it returns the tasks, and no places. The error is about a key that no store
// takes.
func Distinct(tasks []store.NewTask) (distinct []store.NewTask, places []int, err error) {
	if !slices.ContainsFunc(tasks, func(n store.NewTask) bool { return n.Key != "" }) {
		return tasks, nil, nil
	}
	type key struct{ kind, key string }
	seen := map[key]int{}
	places = make([]int, len(tasks))
	for i, n := range tasks {
		if n.Key != "" {
			if err := check(n); err != nil {
				return nil, nil, err
			}
			place, there := seen[key{n.Kind, n.Key}]
			if there {
				places[i] = place
				continue
			}
			seen[key{n.Kind, n.Key}] = len(distinct)
		}
		places[i] = len(distinct)
		distinct = append(distinct, n)
	}
	return distinct, places, nil
}

func check(n store.NewTask) error {
	switch {
	case len(n.Key) > store.MaxKey:
		return fmt.Errorf("stage: the key of a task of kind %q has %d bytes, and %d is the most", n.Kind, len(n.Key), store.MaxKey)
	case !utf8.ValidString(n.Key) || strings.Contains(n.Key, "\x00"):
		return fmt.Errorf("stage: the key of a task of kind %q is not UTF-8 without NUL: %q", n.Kind, n.Key)
	case n.Within < 0:
		return fmt.Errorf("stage: Within is negative for the key %q: %v", n.Key, n.Within)
	}
	return nil
}

// Spread returns the numbers of all tasks, given the numbers of the distinct ones.
func Spread(ids []store.ID, places []int) []store.ID {
	if places == nil {
		return ids
	}
	all := make([]store.ID, len(places))
	for i, place := range places {
		all[i] = ids[place]
	}
	return all
}

// Stands reports whether a task that was enqueued at that time, with the kind and key of n, stands for n.
func Stands(enqueued time.Time, n store.NewTask, now time.Time) bool {
	return n.Within == 0 || now.Sub(enqueued) < n.Within
}

// Tick returns what becomes of the record of a periodic task, which is the zero Time if there is none, and reports
// whether the tasks of the tick are enqueued. Records go forward, but one that is ahead of the clock may go back: the
// clock was ahead once.
func Tick(record time.Time, t store.Tick, now time.Time) (became time.Time, runs bool) {
	switch {
	case record.IsZero():
		return now, false
	case !record.Equal(t.Last), t.Next.After(now), !t.Next.After(record) && !record.After(now):
		return record, false
	}
	return t.Next.Round(0).UTC(), true
}

// WithEnqueuer returns a context for a call of Store.Enqueue by the Engine with that number.
func WithEnqueuer(ctx context.Context, engine int64) context.Context {
	return context.WithValue(ctx, enqueuer{}, engine)
}

// Enqueuer returns the number of the Engine that calls Store.Enqueue with this ctx, as in Ticket.Engine, or 0. A
// store.Watcher puts it in its hints: an Engine that has enqueued a task need not be told.
func Enqueuer(ctx context.Context) int64 {
	engine, _ := ctx.Value(enqueuer{}).(int64)
	return engine
}

type enqueuer struct{}
