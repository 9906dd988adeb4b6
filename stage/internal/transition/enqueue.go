package transition

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daimon-go/daimon/stage/store"
)

// Distinct returns the tasks without any task that has the kind and the key of an earlier one, and for each task its
// place in that list. If none has a key, it returns the tasks, and no places. The error is about a key that no store
// takes.
func Distinct(tasks []store.NewTask) (distinct []store.NewTask, places []int, err error) {
	places, err = firsts(tasks)
	if places == nil || err != nil {
		return tasks, nil, err
	}
	for i, n := range tasks {
		if places[i] < i {
			places[i] = places[places[i]]
			continue
		}
		places[i] = len(distinct)
		distinct = append(distinct, n)
	}
	return distinct, places, nil
}

// firsts returns for each task the place of the first one with the same kind and key, or nil if none has a key.
func firsts(tasks []store.NewTask) (first []int, err error) {
	type key struct{ kind, key string }
	var seen map[key]int
	for i, n := range tasks {
		if n.Key == "" {
			continue
		}
		if err := check(n); err != nil {
			return nil, err
		}
		if seen == nil {
			seen, first = map[key]int{}, make([]int, len(tasks))
			for j := range first {
				first[j] = j
			}
		}
		if j, ok := seen[key{n.Kind, n.Key}]; ok {
			first[i] = j
		} else {
			seen[key{n.Kind, n.Key}] = i
		}
	}
	return first, nil
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
