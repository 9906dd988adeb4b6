package transition

import (
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

// check returns what is wrong with the key of a task.
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
