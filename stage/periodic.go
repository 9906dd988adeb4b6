package stage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/stage/store"
)

// Periodic is a task that is enqueued again and again, at the ticks of a Schedule. The store keeps the latest tick of each
// one, by its name in Upkeep.Periodic. Engines that have the same name should have the same Periodic: each tick is run by
// one of them, in one transaction with its record. Time is the store's clock: a machine whose clock is off does no harm.
//
// If the store's clock is set forward, the ticks in between are missed. If it is set back, its time is earlier than the
// latest tick. Then ticks that have been run are not run again, as in cron(8): the next one comes when the clock has
// passed the latest. But if the clock was set back by three hours or more, or by a minute or more with several ticks in
// that time, it is taken to be right now. Ticks go on from its time, so some may run twice, and that is logged.
//
// If the store does not know a name, its first tick is the next one of the Schedule. A Schedule may change: it goes on
// from the latest tick. The record of a name that is no longer used stays; if the name comes back, the ticks until then
// were missed. Ticks at nearly the same time share a call of the store, 1000 at most, so one may be run 100 ms late.
type Periodic struct {
	// Kind is the kind of the task, one of Config.Kinds.
	Kind string

	// Data returns the data of the task of a tick. nil means the tick in the form of 2026-05-01T10:00:00.000Z, which
	// time.Parse reads with time.RFC3339. Such texts sort as the ticks do. Data is how a processor learns which tick its task
	// is for: Task.Created and Task.Due are later.
	Data func(tick time.Time) ([]byte, error)

	// Schedule says when the ticks are: see [Every], and the schedules of cron libraries.
	Schedule Schedule

	// Missed bounds how many ticks that passed while no engine ran are run afterwards, each with a task of its own: the
	// latest ones. 0 means 1, and 1000 is the most. With -1 none is run, except a latest tick that is less than a
	// minute ago.
	Missed int
}

// Schedule has the ticks of a periodic task. Next returns the first one after t, which is in UTC, or the zero Time if there
// is none. Ticks are rounded up to milliseconds. A Schedule should depend on nothing but t. Next is not called on a
// scheduler's thread. If it panics, or returns a time that is not after t, that is logged. The engine then runs no more
// ticks of that name until it runs again. The same is true of Periodic.Data and its error.
//
// The schedules of github.com/netresearch/go-cron are Schedules, and so are the schedules of github.com/robfig/cron/v3,
// which has had no release since 2020. Without CRON_TZ= their times are UTC. With it, go-cron runs a tick whose time
// summer time skips an hour later on that day, and a time that comes twice in autumn is two ticks. See
// e2e/libraries/cron_test.go.
type Schedule interface {
	// Next returns the first tick after t, which is in UTC, or the zero Time if there is none.
	Next(t time.Time) time.Time
}

// Every is a Schedule with a tick each d, at multiples of d since the zero Time: the ticks of time.Hour are full hours. It
// panics if d is less than a millisecond.
func Every(d time.Duration) Schedule {
	if d < time.Millisecond {
		panic(fmt.Sprintf("stage: Every(%v) is less than a millisecond", d))
	}
	return every(d)
}

type every time.Duration

func (d every) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(d)).Add(time.Duration(d))
}

const (
	mostTicks = 1000                   // in a call of the store, of names and about as many tasks
	tickPause = 100 * time.Millisecond // after a call that was not full, so that ticks at nearly the same time share one
	tickSleep = time.Minute            // at most between two calls, so that the store's time is known
	tickLate  = time.Minute            // what a Missed of -1 allows for

	// By how much the store's clock is behind the latest tick when ticks go on from its time: if several are in
	// between, and in any case. The second is the one of cron(8).
	clockBack  = time.Minute
	clockWrong = 3 * time.Hour

	// tickForm is RFC 3339 of one length.
	tickForm = "2006-01-02T15:04:05.000Z07:00"
)

func (p Periodic) check(say require, kinds map[string]Kind) {
	_, known := kinds[p.Kind]
	say(known, "Kind is none of Kinds: %q", p.Kind)
	say(p.Schedule != nil, "Schedule is missing")
	say(-1 <= p.Missed && p.Missed <= mostTicks, "Missed is not between -1 and %d: %d", mostTicks, p.Missed)
}

// timetable has the ticks of an engine while it runs. Its methods are called by one goroutine at a time.
type timetable struct {
	e    *Engine
	now  func() time.Duration // the clock of the host
	rows []*row

	// The store's time was base when now returned at. It is zero until the store has answered.
	base time.Time
	at   time.Duration
}

type row struct {
	Periodic
	name string
	e    *Engine
	last time.Time // as the store has it; zero if it is not known
	next time.Time // the tick after last; zero if there is none
	over bool      // the Schedule or the Data is broken
}

func newTimetable(e *Engine, now func() time.Duration) *timetable {
	y := &timetable{e: e, now: now}
	for _, name := range slices.Sorted(maps.Keys(e.cfg.Upkeep.Periodic)) {
		y.rows = append(y.rows, &row{Periodic: e.cfg.Upkeep.Periodic[name], name: name, e: e})
	}
	return y
}

// time is the store's, as far as it is known: perhaps earlier, by as long as its answer took.
func (y *timetable) time() time.Time {
	if y.base.IsZero() {
		return y.base
	}
	return y.base.Add(y.now() - y.at)
}

// poll runs the ticks that are due, and returns how long to wait before the next call.
func (y *timetable) poll(ctx context.Context) (after time.Duration, err error) {
	ticks, rows, full := y.due()
	now, records, err := y.e.cfg.Store.Tick(ctx, ticks...)
	if err != nil {
		return 0, err
	}
	y.e.answered()
	if by := now.Sub(y.time()); !y.base.IsZero() && by.Abs() >= clockBack {
		y.e.cfg.Logger.Warn("the store's clock has jumped", zap.Duration("by", by))
	}
	y.base, y.at = now, y.now()
	added, moved, back := false, len(rows) == 0, 0
	for i, r := range rows {
		if records[i].Before(r.last) {
			back++
		}
		moved = moved || !records[i].Equal(ticks[i].Last)
		added = added || len(ticks[i].Tasks) > 0 && records[i].Equal(ticks[i].Next)
		r.record(records[i])
	}
	if added {
		y.e.where().ring()
	}
	if back > 0 {
		y.e.cfg.Logger.Warn("the store's clock was ahead once, and periodic tasks go on from its present time", zap.Int("tasks", back))
	}
	switch {
	case !moved: // the store has refused all
		return max(y.wait(), y.e.polling()), nil
	case full:
		return 0, nil
	}
	return y.wait(), nil
}

// due returns the ticks that are to be run, and of names of which nothing is known yet, as many as fit a call. It reports
// whether there may be more.
func (y *timetable) due() (ticks []store.Tick, rows []*row, full bool) {
	now, tasks := y.time(), 0
	for _, r := range y.rows {
		if len(ticks) == mostTicks || tasks >= mostTicks {
			return ticks, rows, true
		}
		if t, ok := r.wanted(now); ok {
			ticks, rows, tasks = append(ticks, t), append(rows, r), tasks+len(t.Tasks)
		}
	}
	return ticks, rows, false
}

func (y *timetable) wait() time.Duration {
	now := y.time()
	wait := tickSleep
	for _, r := range y.rows {
		switch {
		case r.ahead(now):
			return tickPause
		case !r.over && !r.next.IsZero():
			wait = min(wait, r.next.Sub(now))
		}
	}
	return max(wait, tickPause)
}

func (r *row) wanted(now time.Time) (t store.Tick, ok bool) {
	t = store.Tick{Name: r.name, Last: r.last}
	switch {
	case r.over, r.last.IsZero():
	case r.ahead(now):
		t.Next = now.Truncate(time.Millisecond)
	case !r.next.IsZero() && !r.next.After(now):
		t = r.tick(now)
	default:
		return t, false
	}
	return t, !r.over // perhaps it has just broken
}

// ahead reports whether the latest tick is so far ahead of the store's clock that ticks go on from now.
func (r *row) ahead(now time.Time) bool {
	switch by := r.last.Sub(now); {
	case r.over || by < clockBack:
		return false
	case by >= clockWrong:
		return true
	}
	next := r.after(now)
	if !next.IsZero() {
		next = r.after(next)
	}
	return !next.IsZero() && !next.After(r.last)
}

func (r *row) record(last time.Time) {
	if !r.last.Equal(last) || r.last.IsZero() {
		r.last = last
		r.next = r.after(last)
	}
}

// tick returns the tick for all that is due.
func (r *row) tick(now time.Time) store.Tick {
	most := max(1, r.Missed)
	passed := r.passed(now, most)
	if r.over || len(passed) == 0 {
		r.over = true
		return store.Tick{}
	}
	t := store.Tick{Name: r.name, Last: r.last, Next: passed[len(passed)-1]}
	passed = passed[max(0, len(passed)-most):]
	if r.Missed < 0 && now.Sub(t.Next) >= tickLate {
		passed = nil
	}
	for _, at := range passed {
		data, err := r.data(at)
		if err != nil {
			r.broken(err)
			return store.Tick{}
		}
		first := r.e.cfg.Kinds[r.Kind].Chain.stages[0].name
		t.Tasks = append(t.Tasks, store.NewTask{Kind: r.Kind, Stage: first, Data: data})
	}
	return t
}

// passed returns the ticks after the last one until now: the latest ones if there are many. There may be millions since the
// last one, so it skips half of the time as long as there are too many in it.
func (r *row) passed(now time.Time, most int) (passed []time.Time) {
	enough := 4*most + 1000
	for from := r.last; ; from = from.Add(now.Sub(from) / 2) {
		var some []time.Time
		at := r.after(from)
		for ; !at.IsZero() && !at.After(now) && len(some) < enough; at = r.after(at) {
			some = append(some, at)
		}
		if len(some) > 0 {
			passed = some
		}
		if len(some) < enough {
			return passed
		}
	}
}

// after returns the tick after t, in whole milliseconds, or the zero Time.
func (r *row) after(t time.Time) (next time.Time) {
	if r.over {
		return time.Time{}
	}
	defer func() {
		if p := recover(); p != nil {
			r.broken(fmt.Errorf("the Schedule has panicked: %v", p))
			next = time.Time{}
		}
	}()
	next = r.Schedule.Next(t)
	if next.IsZero() {
		return next
	}
	next = next.Round(0).UTC()
	if up := next.Truncate(time.Millisecond); up.Before(next) {
		next = up.Add(time.Millisecond)
	}
	if !next.After(t) {
		r.broken(fmt.Errorf("the Schedule has %v after %v", next, t))
		return time.Time{}
	}
	return next
}

func (r *row) data(tick time.Time) (data []byte, err error) {
	if r.Data == nil {
		return []byte(tick.Format(tickForm)), nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the Data has panicked: %v", p)
		}
	}()
	return r.Data(tick)
}

func (r *row) broken(err error) {
	r.over = true
	r.e.cfg.Logger.Error("a periodic task has no more ticks", zap.String("name", r.name), zap.Error(err))
}
