package stage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// looker is an engine whose timetable a test looks at, over a store whose clock it puts forward.
type looker struct {
	t       *testing.T
	clock   time.Time
	jumped  time.Duration // by which the clock has not gone but jumped
	calls   int
	store   store.Store
	pollers *stage.Pollers
}

// counting is its store, whose calls it counts.
type counting struct {
	store.Store
	l *looker
}

func (c counting) Tick(ctx context.Context, ticks ...store.Tick) (time.Time, []time.Time, error) {
	c.l.calls++
	require.LessOrEqual(c.l.t, len(ticks), 1000)
	return c.Store.Tick(ctx, ticks...)
}

func newLooker(t *testing.T, periodic map[string]stage.Periodic, log *zap.Logger) *looker {
	l := &looker{t: t, clock: time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)}
	l.store = memory.New(func() time.Time { return l.clock })
	l.again(periodic, log)
	l.pollers.Look(t.Context())
	return l
}

// again makes another engine.
func (l *looker) again(periodic map[string]stage.Periodic, log *zap.Logger) {
	cfg := good()
	cfg.Store, cfg.Upkeep.Periodic, cfg.Logger = counting{l.store, l}, periodic, log
	e, err := stage.New(cfg)
	require.NoError(l.t, err)
	begun := l.clock.Add(-l.jumped)
	l.pollers = stage.NewPollers(e, func() time.Duration { return l.clock.Add(-l.jumped).Sub(begun) })
}

// jump sets the clock forward or back.
func (l *looker) jump(by time.Duration) {
	l.clock, l.jumped = l.clock.Add(by), l.jumped+by
}

// ran returns the ticks of all tasks after the first n.
func (l *looker) ran(n int) (ticks []string) {
	tasks, err := l.store.List(l.t.Context(), store.Selection{After: store.ID(n)})
	require.NoError(l.t, err)
	for _, t := range tasks {
		ticks = append(ticks, string(t.Data))
	}
	return ticks
}

// at is a tick as a task has it.
func at(hour, minute int) string {
	return time.Date(2026, time.May, 1, hour, minute, 0, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
}

func TestMissedTicks(t *testing.T) {
	for _, row := range []struct {
		name  string
		p     stage.Periodic
		after time.Duration
		want  []string
	}{
		{"not yet", stage.Periodic{}, time.Hour - 1, nil},
		{"in time", stage.Periodic{}, time.Hour, []string{at(1, 0)}},
		{"one for all", stage.Periodic{}, 5*time.Hour + time.Minute, []string{at(5, 0)}},
		{"none, in time", stage.Periodic{Missed: -1}, time.Hour + time.Minute - 1, []string{at(1, 0)}},
		{"none, too late", stage.Periodic{Missed: -1}, time.Hour + time.Minute, nil},
		{"none, but the latest", stage.Periodic{Missed: -1}, 3*time.Hour + time.Second, []string{at(3, 0)}},
		{"each", stage.Periodic{Missed: 100}, 3*time.Hour + time.Minute, []string{at(1, 0), at(2, 0), at(3, 0)}},
		{"each up to a bound", stage.Periodic{Missed: 2}, 9 * time.Hour, []string{at(8, 0), at(9, 0)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.p.Kind, row.p.Schedule = "report", stage.Every(time.Hour)
			all := map[string]stage.Periodic{"p": row.p}
			l := newLooker(t, all, zap.NewNop())
			l.clock = l.clock.Add(row.after)
			l.again(all, zap.NewNop()) // nothing has run meanwhile
			l.pollers.Look(t.Context())
			l.pollers.Look(t.Context())
			require.Equal(t, row.want, l.ran(0))
			n := len(row.want)
			l.pollers.Look(t.Context())
			require.Empty(t, l.ran(n), "once")
			next := l.clock.Truncate(time.Hour).Add(time.Hour)
			l.clock = next
			l.pollers.Look(t.Context())
			require.Equal(t, []string{next.Format("2006-01-02T15:04:05.000Z")}, l.ran(n), "and it goes on")
		})
	}
}

// The clock is ahead for a moment, in which ticks run. What was broken: after that no ticks ran for as long as the
// clock had been ahead.
func TestTicksGoOnWhenTheClockIsSetBack(t *testing.T) {
	for _, row := range []struct {
		name         string
		every, ahead time.Duration
		next         time.Duration // when the next tick is if the engine has been running all the time
		anew         time.Duration // if another engine takes over
		logs         string
	}{
		{"by less than a minute", 10 * time.Second, time.Minute - 1, time.Minute, time.Minute, ""},
		{"over several ticks", time.Minute, time.Hour, 2 * time.Minute, time.Minute, "jumped jumped ahead"},
		{"over one tick, which does not run again", time.Hour, 2*time.Hour - 1, 2 * time.Hour, 2 * time.Hour, "jumped jumped"},
		{"over one tick, but by more than three hours", 4 * time.Hour, 4 * time.Hour, 4 * time.Hour, 4 * time.Hour, "jumped jumped ahead"},
		{"by ten years", time.Hour, 87_600 * time.Hour, time.Hour, time.Hour, "jumped jumped ahead"},
	} {
		for _, restarted := range []bool{false, true} {
			core, logs := observer.New(zap.WarnLevel)
			all := map[string]stage.Periodic{"p": {Kind: "report", Schedule: stage.Every(row.every)}}
			l := newLooker(t, all, zap.New(core))
			begun := l.clock
			l.jump(row.ahead)
			l.pollers.Look(t.Context()) // and learns of it
			l.pollers.Look(t.Context())
			require.Len(t, l.ran(0), 1, row.name)
			l.jump(-row.ahead)
			next, want := row.next, row.logs
			if restarted {
				l.again(all, zap.New(core))
				next, want = row.anew, strings.Replace(want, "jumped ", "", 1)
			}
			for len(l.ran(0)) == 1 {
				l.clock = l.clock.Add(l.pollers.Do(t.Context()))
			}
			require.Equal(t, begun.Add(next).Format("2006-01-02T15:04:05.000Z"), l.ran(1)[0], "%s, %v", row.name, restarted)
			var said []string
			for _, entry := range logs.All() {
				said = append(said, map[bool]string{true: "jumped", false: "ahead"}[strings.Contains(entry.Message, "jumped")])
			}
			require.Equal(t, want, strings.Join(said, " "), "%s, %v", row.name, restarted)
		}
	}
}

// Millions of ticks have passed: the latest ones run, and it takes no long time.
func TestMillionsOfMissedTicks(t *testing.T) {
	all := map[string]stage.Periodic{"p": {Kind: "report", Schedule: stage.Every(time.Millisecond), Missed: 3}}
	l := newLooker(t, all, zap.NewNop())
	l.clock = l.clock.Add(24 * time.Hour)
	l.pollers.Look(t.Context())
	var want []string
	for i := range 3 {
		want = append(want, l.clock.Add(time.Duration(i-2)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"))
	}
	require.Equal(t, want, l.ran(0))
}

// scheduled is a Schedule.
type scheduled func(time.Time) time.Time

func (f scheduled) Next(t time.Time) time.Time { return f(t) }

// Ticks that are broken keep no others from running.
func TestBrokenTicks(t *testing.T) {
	hourly := stage.Every(time.Hour)
	core, logs := observer.New(zap.InfoLevel)
	l := newLooker(t, map[string]stage.Periodic{
		"panics":           {Kind: "report", Schedule: scheduled(func(time.Time) time.Time { panic("a bug") })},
		"goes back":        {Kind: "report", Schedule: scheduled(func(t time.Time) time.Time { return t.Add(-1) })},
		"stands still":     {Kind: "report", Schedule: scheduled(func(t time.Time) time.Time { return t })},
		"has no more":      {Kind: "report", Schedule: scheduled(func(time.Time) time.Time { return time.Time{} })},
		"has bad data":     {Kind: "report", Schedule: hourly, Data: func(time.Time) ([]byte, error) { return nil, errors.New("no data") }},
		"data that panics": {Kind: "report", Schedule: hourly, Data: func(time.Time) ([]byte, error) { panic("another bug") }},
		"is late to panic": {Kind: "report", Schedule: scheduled(func(t time.Time) time.Time {
			if t = hourly.Next(t); t.Hour() == 2 {
				panic("at last")
			}
			return t
		})},
		"ok": {Kind: "report", Schedule: hourly, Data: func(t time.Time) ([]byte, error) { return fmt.Append(nil, t.Hour()), nil }},
	}, zap.New(core))
	for range 3 {
		l.clock = l.clock.Add(time.Hour)
		require.Equal(t, time.Minute, l.pollers.Look(t.Context()))
	}
	require.Equal(t, []string{"1", "2", "3"}, l.ran(0))
	names := map[string]int{}
	for _, entry := range logs.FilterMessage("a periodic task has no more ticks").All() {
		names[entry.ContextMap()["name"].(string)]++
	}
	require.Equal(t, map[string]int{
		"panics": 1, "goes back": 1, "stands still": 1, "has bad data": 1, "data that panics": 1, "is late to panic": 1,
	}, names)
}

// Ten thousand names take calls of a thousand.
func TestManyTicks(t *testing.T) {
	all := map[string]stage.Periodic{}
	for i := range 10_000 {
		all[fmt.Sprint(i)] = stage.Periodic{Kind: "report", Schedule: stage.Every(time.Minute)}
	}
	l := newLooker(t, all, zap.NewNop())
	for l.pollers.Look(t.Context()) == 0 {
	}
	l.clock, l.calls = l.clock.Add(time.Minute), 0
	for l.pollers.Look(t.Context()) == 0 { // which was 100 ms
	}
	require.Len(t, l.ran(0), 10_000)
	require.Equal(t, 10, l.calls)
}

func TestEvery(t *testing.T) {
	from := time.Date(2026, time.May, 1, 10, 20, 30, 40, time.UTC)
	require.Equal(t, time.Date(2026, time.May, 1, 11, 0, 0, 0, time.UTC), stage.Every(time.Hour).Next(from))
	require.Equal(t, time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC), stage.Every(time.Hour).Next(stage.Every(time.Hour).Next(from)))
	require.Panics(t, func() { stage.Every(time.Millisecond - 1) })
}

// skewed is the store as an engine sees it that believes in another time.
type skewed struct {
	store.Store
	by time.Duration
}

func (s skewed) Tick(ctx context.Context, ticks ...store.Tick) (time.Time, []time.Time, error) {
	now, last, err := s.Store.Tick(ctx, ticks...)
	return now.Add(s.by), last, err
}

// TestWorldPeriodic is a few processes with engines that have the same periodic tasks, over a store that now and then does not
// answer. Some believe in a time that is hours off; all but one are shut down or die. Each tick is run once, and none is missed.
func TestWorldPeriodic(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		y := newTasksWorld(w)
		for _, name := range []string{"A", "B", "C", "last"} {
			var off time.Duration
			if name != "last" {
				off = pick(w, 0, 5*time.Hour, -5*time.Hour)
			}
			e, err := stage.New(stage.Config{
				Store: skewed{y.store, off}, Kinds: map[string]stage.Kind{"note": {Chain: stage.Begin("A").Then("B", "note", "C")}},
				Processors: map[string]stage.Processor{"note": func(context.Context, *store.Task) (store.Commit, error) { return nil, nil }},
				Worker:     name, Poll: 5 * time.Second, Heartbeat: 4 * time.Second, Logger: zap.NewNop(), Upkeep: stage.Upkeep{Periodic: map[string]stage.Periodic{
					"p": {Kind: "note", Schedule: stage.Every(5 * time.Second), Missed: 1000},
					"q": {Kind: "note", Schedule: stage.Every(time.Hour)},
				}},
			})
			require.NoError(t, err)
			v, err := w.Server(name, act.Config{Schedulers: pick(w, 1, 2)}, e.Setup)
			require.NoError(t, err)
			if name != "last" && w.Rand().IntN(3) > 0 {
				terms := pick(w, bounded...)
				w.At(y.moment(), func() { v.Shutdown(terms) })
			}
		}
		last := &service.Listener{Address: "10.0.0.1:7007", Handler: echo.Echo}
		_, err := w.Server("echo", act.Config{}, last.Setup)
		require.NoError(t, err)
		w.Client("10.0.0.1:7007", func(c *sim.Client) error {
			c.Sleep(3 * time.Minute) // a call of the store may take one
			tasks, err := y.store.Store.List(context.Background(), store.Selection{})
			if len(tasks) < 14 {
				w.Errorf("there are only %d ticks", len(tasks))
			}
			for i, x := range tasks {
				if i == 0 {
					continue
				}
				before, err1 := time.Parse(time.RFC3339Nano, string(tasks[i-1].Data))
				tick, err2 := time.Parse(time.RFC3339Nano, string(x.Data))
				if err1 != nil || err2 != nil || tick.Sub(before) != 5*time.Second || tick.After(x.Created) {
					w.Errorf("after the tick %s comes %s, at %v", tasks[i-1].Data, x.Data, x.Created)
				}
			}
			return err
		})
	})
}
