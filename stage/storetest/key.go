package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// keyed is a task with a key.
func keyed(kind, key string, within time.Duration) store.NewTask {
	return store.NewTask{Kind: kind, Stage: created, Data: []byte("data"), Key: key, Within: within}
}

func testKeys(f *fixture) {
	first := f.enqueued(keyed("a", "k", 0))
	was := f.get(first)
	f.advance(length)
	again := keyed("a", "k", 0)
	again.Stage, again.Data, again.After = "ELSEWHERE", []byte("other data"), time.Hour
	f.Equal(first, f.enqueued(again))
	f.same(was)

	f.Greater(f.enqueued(keyed("b", "k", 0)), first, "another kind")
	f.Greater(f.enqueued(keyed("a", "K", 0)), first, "another key")
	f.Greater(f.enqueue("a"), first, "no key")
	f.Greater(f.enqueued(keyed("ak", "", time.Hour)), first, "no key, whatever the time")
	f.Greater(f.enqueued(keyed("ak", "", time.Hour)), first)

	// Whatever has become of the task.
	f.yes(f.suspend(first))
	f.Equal(first, f.enqueued(keyed("a", "k", 0)))
	f.yes(f.resume(first))
	f.yes(f.a.Cancel(f.ctx, first))
	f.advance(time.Hour)
	f.Equal(first, f.enqueued(keyed("a", "k", 0)))
	f.Equal(store.Canceled, f.get(first).Status)
}

// testKeyWindow has windows that begin when a task is added, and not when another one was not.
func testKeyWindow(f *fixture) {
	first := f.enqueued(keyed("a", "k", length))
	f.advance(length - time.Millisecond)
	f.Equal(first, f.enqueued(keyed("a", "k", length)))
	f.Equal(first, f.enqueued(keyed("a", "k", length-time.Millisecond+1)))
	f.advance(time.Millisecond)
	f.Equal(first, f.enqueued(keyed("a", "k", length+1)), "it is the new task that says how long")
	second := f.enqueued(keyed("a", "k", length))
	f.Greater(second, first, "exactly that long ago is too long")
	f.Equal(second, f.enqueued(keyed("a", "k", 0)))
	f.Equal(second, f.enqueued(keyed("a", "k", 2*length)), "the latest one")
	f.advance(time.Millisecond)
	third := f.enqueued(keyed("a", "k", time.Millisecond))
	f.Greater(third, second)
	f.advance(time.Millisecond)
	f.Equal(third, f.enqueued(keyed("a", "k", time.Millisecond+1)))
	f.Equal(third, f.enqueued(keyed("a", "k", 1<<63-1)))
}

func testKeyNames(f *fixture) {
	for name, bad := range map[string]store.NewTask{
		"bytes": keyed("a", strings.Repeat("k", store.MaxKey+1), 0), "NUL": keyed("a", "a\x00b", 0),
		"UTF-8": keyed("a", "a\xffb", 0), "negative": keyed("a", "k", -1),
	} {
		ids, err := f.a.Enqueue(f.ctx, keyed("a", "", 0), bad)
		f.ErrorContains(err, name)
		f.Empty(ids)
	}
	all, err := f.a.List(f.ctx, store.Selection{})
	f.NoError(err)
	f.Empty(all, "all or none")
}

// testKeysAtOnce has many enqueue the same keys at once, in different orders. None waits for another one in a circle.
func testKeysAtOnce(f *fixture) {
	const keys = 20
	for round := range 10 {
		within := []time.Duration{0, time.Hour}[round%2]
		var got [goroutines]map[string]store.ID
		var errs [goroutines]error
		together(goroutines, func(i int) {
			var tasks []store.NewTask
			for _, k := range rand.Perm(keys) {
				tasks = append(tasks, keyed("a", fmt.Sprintf("%d of %d", k, round), within))
			}
			ids, err := f.side(i).Enqueue(polite{f.ctx}, tasks...)
			got[i], errs[i] = map[string]store.ID{}, err
			for j, id := range ids {
				got[i][tasks[j].Key] = id
			}
		})
		for i := range goroutines {
			f.NoError(errs[i])
			f.Len(got[i], keys)
			f.Equal(got[0], got[i], "one task for each key")
		}
	}
	all, err := f.a.List(f.ctx, store.Selection{})
	f.NoError(err)
	f.Len(all, 10*keys)
}
