package stage

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// poller calls the store from time to time, for something other than the tasks that the engine works on.
type poller struct {
	name string // for the log
	// do makes the call, and returns after how long it is to be made next. After an error that is Engine.polling. If ctx has
	// ended, it is at once: another goroutine, or another turn, makes it again.
	do func(ctx context.Context) (after time.Duration, err error)
	of *period // with whose end it is over; nil means never

	rung atomic.Bool // it is to call at once, unless the store has failed
	// Only for the goroutine that makes the calls.
	next   time.Duration // when it is to call, by the host's clock
	failed bool
}

// rarely is later than any call.
const rarely time.Duration = 1 << 62

type pollers struct {
	e   *Engine
	now func() time.Duration // the clock of the host
	all []*poller
}

// newPollers returns the pollers of an engine that runs for the time of p.
func newPollers(e *Engine, p *period, now func() time.Duration) *pollers {
	c := &pollers{e: e, now: now}
	if len(e.cfg.Upkeep.Periodic) > 0 {
		c.all = append(c.all, &poller{name: "tick", of: p, do: newTimetable(e, now).poll})
	}
	for _, s := range slices.Sorted(maps.Keys(e.cfg.Upkeep.Retention)) {
		c.all = append(c.all, &poller{name: "purge", of: p, do: e.retaining(s)})
	}
	return c
}

// do makes the calls that are due, until ctx ends, and returns how long to wait for the next one.
func (c *pollers) do(ctx context.Context) (after time.Duration) {
	next := rarely
	for _, x := range c.all {
		if x.of != nil && x.of.Err() != nil {
			continue
		}
		if rung := x.rung.Swap(false) && !x.failed; rung || c.now() >= x.next {
			after := c.one(ctx, x)
			x.next = c.now() + min(after, rarely-c.now())
		}
		next = min(next, x.next)
	}
	return max(0, next-c.now())
}

func (c *pollers) one(ctx context.Context, x *poller) (after time.Duration) {
	call, cancel := context.WithTimeout(ctx, c.e.cfg.Lease/2)
	defer cancel()
	err := guarded(func() (err error) {
		after, err = x.do(call)
		return err
	})
	x.failed = err != nil && ctx.Err() == nil
	switch {
	case err == nil:
		return after
	case !x.failed:
		return 0
	case x.of == nil || x.of.Err() == nil:
		c.e.unanswered(c.e.cfg.Logger, x.name, err)
	}
	return c.e.polling()
}

// maintenance is the host of pollers in a Group, among them the one for tasks that are waited for there. It is a
// monitor, so it goes on until the scheduler is closed.
type maintenance struct {
	*pollers
	s     *act.Scheduler
	on    act.Executor
	waits *waits
	bell  act.AtomicWaker
	rung  atomic.Bool

	life context.Context // of the calls; it ends when the scheduler is closed
	end  context.CancelFunc

	call  *act.Call[time.Duration]
	stop  context.CancelFunc // ends the call
	next  time.Duration      // when to do what is due
	timer act.Timer          // for then
	ended func()             // is called in the turn in which a call has ended
}

func newMaintenance(c *pollers, s *act.Scheduler, ended func()) *maintenance {
	x := &maintenance{pollers: c, s: s, on: s.Internals().Reserve(1), waits: newWaits(c.e, c.now), ended: ended}
	if len(c.all) == 0 {
		x.next = rarely
	}
	await := &poller{name: "await", do: x.waits.poll}
	c.all = append(c.all, await)
	x.waits.ring = func() {
		await.rung.Store(true)
		x.rung.Store(true)
		x.bell.Wake()
	}
	x.life, x.end = context.WithCancel(context.Background())
	return x
}

func (x *maintenance) String() string { return "stage.Engine " + x.e.cfg.Worker + ", maintenance" }

// Act makes calls if it is time.
func (x *maintenance) Act(t *act.Task) act.Directive {
	x.bell.Set(t.Waker())
	now := t.Scheduler().Now()
	if x.call != nil {
		switch x.call.Act(t) {
		case act.Wait:
			return act.Wait
		case act.Done:
			x.next = now + min(x.call.Value, rarely-now)
		default: // a Goexit
			x.next = now + x.e.polling()
		}
		x.stop()
		x.call = nil
		x.ended()
	}
	switch {
	case x.rung.Swap(false) || now >= x.next:
		var ctx context.Context
		ctx, x.stop = context.WithCancel(x.life)
		x.call = &act.Call[time.Duration]{F: func() (time.Duration, error) { return x.do(ctx), nil }, On: x.on}
		x.call.Act(t)
	case x.next < rarely:
		t.WakeAt(&x.timer, x.next)
	}
	return act.Wait
}

// Stop does nothing: tasks may go on waiting.
func (x *maintenance) Stop(*act.Task, shutdown.Order) {}

// Close ends the call of the store, and all waits.
func (x *maintenance) Close() error {
	x.end()
	x.e.forget(x)
	x.waits.close()
	return nil
}

func (x *maintenance) Describe(d *act.Description) {
	switch {
	case x.call != nil:
		d.WaitsFor("the store, for periodic tasks, retention or waits")
	case x.next < rarely:
		d.WaitsFor("the time of its next poll of the store")
	}
}
