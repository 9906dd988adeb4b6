package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/stage"
)

// testMachine has an engine on a machine whose clock is years ahead of the store's, as harnesses have it, or years behind it.
// Whatever has a time goes by the store's clock, which only the test sets forward.
func testMachine(f *fixture) {
	const year = 365 * 24 * time.Hour
	for _, years := range []time.Duration{0, 100} {
		f.advance(years * year)
		f.machine(fmt.Sprintf("hourly, %d years later", years))
		_, err := f.a.Purge(f.ctx, stage.Purge{Status: stage.Normal, Limit: 100})
		f.NoError(err)
	}
}

func (f *fixture) machine(periodic string) {
	now := f.get(f.enqueue("now")).Created
	again, chain := true, stage.Begin(created).Then(working, "work", done)
	e, err := stage.New(stage.Config{
		Store: f.a, Logger: zap.NewNop(), Backoff: func(int) time.Duration { return time.Hour },
		Kinds: map[string]stage.Kind{"job": {Chain: chain}, "once": {Chain: chain}, "skip": {Chain: chain}},
		Provider: stage.Processors{"work": stage.ProcessorFunc(func(_ context.Context, t *stage.Task) (stage.Commit, error) {
			switch first := again; {
			case string(t.Data) == "fails" && t.Attempt == 0:
				return nil, errors.New("no luck at first")
			case string(t.Data) == "is put off" && first:
				again = false
				return nil, stage.Snooze(time.Hour)
			}
			return nil, nil
		})},
		Periodic: map[string]stage.Periodic{
			periodic:            {Kind: "job", Schedule: stage.Every(time.Hour), Missed: stage.MissedEach},
			periodic + ", once": {Kind: "once", Schedule: stage.Every(time.Hour), Missed: stage.MissedOnce},
			periodic + ", skip": {Kind: "skip", Schedule: stage.Every(time.Hour), Missed: stage.MissedSkip},
		},
	})
	f.NoError(err)
	advance := func(d time.Duration) {
		f.advance(d)
		now = now.Add(d)
	}
	is := func(want, got time.Time) {
		f.t.Helper()
		f.True(want.Equal(got), "%v by the store's clock, and not %v", want, got)
	}
	add := func(n stage.NewTask) stage.ID {
		n.Kind, n.Stage = "job", created
		return f.enqueued(n)
	}
	claims := func(n int) {
		f.t.Helper()
		got, err := e.Fire(f.ctx)
		f.NoError(err)
		f.Equal(n, got)
		f.NoError(e.Wait(f.ctx))
	}

	// When tasks are due: an hour from now, each for another reason.
	for _, row := range []struct {
		task   stage.NewTask
		claims int // at once
	}{
		{stage.NewTask{After: time.Hour}, 0},
		{stage.NewTask{At: now.Add(2 * time.Hour)}, 0}, // when it is added, an hour has passed
		{stage.NewTask{Data: []byte("fails")}, 1},
		{stage.NewTask{Data: []byte("is put off")}, 1},
	} {
		id := add(row.task)
		claims(row.claims)
		waits := f.get(id)
		is(now.Add(time.Hour), waits.Due)
		is(now, waits.Changed)
		failures, err := f.b.Failures(f.ctx, id)
		f.NoError(err)
		for _, failure := range failures {
			is(now, failure.Time)
		}
		advance(time.Hour - time.Millisecond)
		claims(0)
		advance(time.Millisecond)
		claims(1)
		f.Equal(done, f.get(id).Stage)
		is(now, f.get(id).Changed)
	}

	// How long a key counts, and how old tasks are that have ended.
	key := stage.NewTask{Key: "k", Within: time.Hour}
	first := add(key)
	claims(1)
	purges := func(n int) {
		f.t.Helper()
		got, err := f.a.Purge(f.ctx, stage.Purge{Status: stage.Normal, Age: time.Hour, Limit: 100})
		f.NoError(err)
		f.Equal(n, got)
	}
	purges(3)
	advance(time.Hour - time.Millisecond)
	f.Equal(first, add(key))
	purges(0)
	advance(time.Millisecond)
	second := add(key)
	f.Greater(second, first)
	purges(2)
	claims(1)

	// Which ticks are run: each, the latest, or none, since that was more than a minute ago.
	record, err := f.b.Tick(f.ctx, stage.Tick{Name: periodic}, stage.Tick{Name: periodic + ", once"}, stage.Tick{Name: periodic + ", skip"})
	f.NoError(err)
	is(now, record.Now)
	advance(3 * time.Hour)
	f.Greater(now.Sub(now.Truncate(time.Hour)), time.Minute)
	ctx, stop := context.WithCancel(f.ctx)
	var all sync.WaitGroup
	all.Go(func() { f.NoError(e.Run(ctx)) })
	ran := map[string][]stage.Task{}
	f.Eventually(func() bool {
		for _, kind := range []string{"job", "once", "skip"} {
			if ran[kind], err = f.b.List(f.ctx, stage.Selection{Kind: kind, Stage: done, After: second}); err != nil {
				return true
			}
		}
		return len(ran["job"]) >= 3 && len(ran["once"]) >= 1
	}, time.Minute, 5*time.Millisecond)
	stop()
	all.Wait()
	f.NoError(err)
	f.Len(ran["job"], 3)
	f.Len(ran["once"], 1)
	f.Empty(ran["skip"])
	hour := record.Last[0].Truncate(time.Hour)
	for i, t := range append(ran["job"], ran["once"]...) {
		tick := hour.Add(time.Duration(min(i+1, 3)) * time.Hour)
		f.Equal(tick.Format(time.RFC3339Nano), string(t.Data))
		is(now, t.Created)
	}
}
