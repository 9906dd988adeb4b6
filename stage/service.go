package stage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage/store"
)

// Setup is a set-up function for an [act.Group], in place of Run: it makes the engine a service of the scheduler. If
// several schedulers of the Group call it, the first one gets the service. The error is ErrRunning if the engine runs
// already.
//
//	err := act.Run(ctx, act.Config{}, engine.Setup, monitor.Signals(shutdown.Policy{}))
//
// The engine decides in turns on that scheduler when to claim, to take the next step of a task, and to send a
// heartbeat. The Group's Executor makes the calls of the store and of processors. The engine reserves two of its goroutines
// for each of the Workers, four for [NewCall], and one for each of these: heartbeats; periodic tasks, Retention and
// Engine.Future; the hints of a Watcher. An Executor that cannot reserve goroutines needs as many.
//
// On shutdown the engine claims no more tasks and ends the contexts of the processors (ErrInterrupted). It keeps the
// Group's Run from returning, within the shutdown policy, until all tasks have gone back to their last static stage and
// the last heartbeat has returned. The [shutdown.Cut] names the tasks that have not gone back; other engines claim them
// when the leases have ended.
func (e *Engine) Setup(s *act.Scheduler) error {
	if x, ok := e.where().(*service); ok && x.s.Group() == s.Group() {
		return nil
	}
	x := &service{e: e, s: s, bodies: s.Internals().Reserve(2 * e.cfg.Workers), beats: s.Internals().Reserve(1), calls: s.Internals().Reserve(callsAtOnce)}
	if err := e.begin(x); err != nil {
		return err
	}
	p := e.current()
	x.maintenance = newMaintenance(newPollers(e, p, x.now), s, x.bell.Wake)
	s.Attach(x.maintenance)
	e.mu.Lock()
	e.maintenance = x.maintenance
	e.mu.Unlock()
	if w, ok := e.cfg.Store.(store.Watcher); ok {
		s.Internals().Reserve(1).Execute(func() { e.watch(p, w) })
	}
	s.Install(x)
	return nil
}

// NewCall returns an action that calls f on another goroutine. Actions use it to call methods of the engine, which
// block: to add tasks, suspend or list them, or pause a kind. Heartbeats and processors do not delay f, but other calls
// may: the calls of an engine begin in order, and at most four run at a time. So f should not wait for the end of a
// task: see [Engine.Future]. The context of f ends when f has taken as long as Config.Lease, so a store that does not
// answer delays other calls no longer than that.
//
//	suspend := stage.NewCall(engine, func(ctx context.Context) (bool, error) { return engine.Suspend(ctx, id) })
func NewCall[T any](e *Engine, f func(context.Context) (T, error)) *act.Call[T] {
	call := &act.Call[T]{F: func() (T, error) {
		ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Lease)
		defer cancel()
		return f(ctx)
	}}
	if x, ok := e.where().(*service); ok {
		call.On = x.calls
	}
	return call
}

// callsAtOnce bounds how many functions of NewCall run at a time.
const callsAtOnce = 4

// service is the host in a Group: the demon that claims and sends heartbeats. Each work is a task of its scheduler: steps.
type service struct {
	e                    *Engine
	s                    *act.Scheduler
	bodies, beats, calls act.Executor

	bell  act.AtomicWaker
	rung  atomic.Bool
	early atomic.Bool // a heartbeat is wanted at once

	claim *act.Call[struct{}]
	poll  time.Duration // when to claim at the latest
	timer act.Timer     // for then
	beat  *act.Call[bool]
	due   bool          // a heartbeat is to be sent
	pulse time.Duration // when the next one is due, if any work has a lease
	heart act.Timer     // for then

	maintenance *maintenance
	lastCall    *act.Call[time.Duration] // the call that was under way at the end

	mu   sync.Mutex
	got  []*work // claimed, also by Fire, until the next turn
	gone bool    // there is no next turn
}

func (x *service) String() string { return "stage.Engine " + x.e.cfg.Worker }

func (x *service) now() time.Duration { return x.s.Clock().Monotonic() }

func (x *service) ring() {
	x.rung.Store(true)
	x.bell.Wake()
}

// settled is for the last turn of an end.
func (x *service) settled() { x.bell.Wake() }

func (x *service) heartbeatNow() {
	x.early.Store(true)
	x.bell.Wake()
}

// rest does nothing: the Group waits.
func (x *service) rest(*period) {}

// take is called by Fire.
func (x *service) take(works []*work) {
	x.put(works)
	x.bell.Wake()
}

// put leaves works for the next turn. If there is none they are given back.
func (x *service) put(works []*work) {
	x.mu.Lock()
	if !x.gone {
		x.got = append(x.got, works...)
		works = nil
	}
	x.mu.Unlock()
	x.e.sendBack(context.Background(), works)
}

// Act takes claimed tasks, and claims and sends a heartbeat if it is time.
func (x *service) Act(t *act.Task) act.Directive {
	x.bell.Set(t.Waker())
	rung := x.rung.Swap(false)
	now := x.s.Now()
	stopping, idle := x.e.state()
	if stopping && idle {
		return x.ending(t)
	}
	x.claiming(t, now, rung && !stopping)
	x.beating(t, now)
	if x.claim == nil {
		t.WakeAt(&x.timer, x.poll)
	}
	if x.e.needsHeartbeats() {
		t.WakeAt(&x.heart, x.pulse)
	}
	return act.Wait
}

func (x *service) claiming(t *act.Task, now time.Duration, rung bool) {
	if x.claim != nil {
		d := x.claim.Act(t)
		if d == act.Failed && !errors.Is(t.Err(), ErrInterrupted) {
			x.e.unanswered(x.e.cfg.Logger, "claim", t.Err())
			rung = false // not before the next poll
		}
		if d != act.Wait {
			x.claim = nil
		}
	}
	for _, w := range x.granted() {
		x.s.Spawn(&steps{x: x, w: w})
	}
	switch {
	case x.claim != nil && rung:
		x.rung.Store(true) // for when it has returned
	case x.claim == nil && (rung || now >= x.poll):
		x.poll = now + x.e.polling()
		x.claim = &act.Call[struct{}]{On: x.bodies, F: func() (struct{}, error) {
			works, err := x.e.claim(x.e.current())
			x.put(works)
			return struct{}{}, err
		}}
		x.claim.Act(t)
	}
}

func (x *service) granted() []*work {
	x.mu.Lock()
	defer x.mu.Unlock()
	works := x.got
	x.got = nil
	return works
}

// beating sends a heartbeat if it is time. It does not wait for the store to end the contexts of works whose lease has
// ended.
func (x *service) beating(t *act.Task, now time.Duration) {
	if x.beat != nil && x.beat.Act(t) != act.Wait {
		x.due = x.due && !x.beat.Value // one that was due meanwhile is sent at once only if this one has failed
		x.beat = nil
	}
	if now >= x.pulse {
		x.due, x.pulse = true, now+x.e.cfg.Heartbeat
		x.e.expire()
	}
	if x.early.Swap(false) {
		x.due = true
	}
	if !x.due || x.beat != nil {
		return
	}
	if x.due = false; x.e.needsHeartbeats() {
		x.beat = &act.Call[bool]{F: func() (bool, error) { return x.e.beat(), nil }, On: x.beats}
		x.beat.Act(t)
	}
}

// ending ends the last heartbeat and the maintenance, and waits for their calls of the store: a caller may close it when the
// Group's Run has returned.
func (x *service) ending(t *act.Task) act.Directive {
	if p := x.e.current(); p.Err() == nil {
		p.end()
		if x.lastCall = x.maintenance.call; x.lastCall != nil {
			x.maintenance.stop()
		}
	}
	if x.beat != nil && x.beat.Act(t) != act.Wait {
		x.beat = nil
	}
	if x.beat != nil || x.lastCall != nil && x.lastCall == x.maintenance.call {
		return act.Wait
	}
	return act.Done
}

// Stop sends all tasks back.
func (x *service) Stop(*act.Task, shutdown.Order) { x.e.interrupt() }

// Close gives back the tasks of a claim under way, and ends the calls of the store.
func (x *service) Close() error {
	x.mu.Lock()
	x.gone = true
	x.mu.Unlock()
	if works := x.granted(); len(works) > 0 {
		x.bodies.Execute(func() { x.e.sendBack(context.Background(), works) })
	}
	x.e.current().end()
	x.e.conclude()
	return nil
}

// steps is the action of one work: for each step a turn, and a call on another goroutine.
type steps struct {
	x     *service
	w     *work
	call  *act.Call[time.Duration]
	timer act.Timer
	due   time.Duration // of the next step
}

func (r *steps) String() string { return r.w.String() }

// Act takes the next step when the last has been taken, and it is time.
func (r *steps) Act(t *act.Task) act.Directive {
	if r.call != nil {
		if r.call.Act(t) == act.Wait {
			return act.Wait
		}
		r.due = r.x.s.Now() + r.call.Value // 0 after a Goexit, which the next step makes a failure
		r.call = nil
	}
	if r.w.over() {
		return act.Done // Close removes it
	}
	if r.x.s.Now() < r.due {
		t.WakeAt(&r.timer, r.due)
		return act.Wait
	}
	r.call = &act.Call[time.Duration]{F: func() (time.Duration, error) { return r.w.step(), nil }, On: r.x.bodies}
	return r.call.Act(t)
}

// Close ends the work. A step under way still returns, and is the last.
func (r *steps) Close() error {
	if r.call != nil {
		_ = r.call.Close()
	}
	if e := r.x.e; r.call != nil || !r.w.over() { // its processor may not have returned, so its lease ends by itself
		e.mu.Lock()
		e.dropped = append(e.dropped, r.w)
		e.mu.Unlock()
	}
	r.x.e.remove(r.w)
	return nil
}
