package tasklet

import (
	"runtime"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// NewRunner returns a Runner for a program without other schedulers: schedule tasklets, then call [Runner.Run]. In a server
// use [RunnerOf]. Run makes a new act.Scheduler with cfg. The Executor of cfg runs the phases that may block (Async), on
// goroutines other than the one in Run; otherwise the tasklet fails. Any goroutine may call NewRunner.
func NewRunner(cfg act.Config) *Runner { return &Runner{core: newCore(cfg, owner)} }

// RunnerOf returns the Runner whose tasklets are tasks of s, among other tasks, for use in a server or a simulation.
// SYNC phases are turns of s, members keep the Run of s from returning, and a shutdown and the Close of s apply to
// them. The runner has no Run of its own; it is running until s is closed. Each s has one Runner, which every call
// returns. RunnerOf must be called on the thread of s.
func RunnerOf(s *act.Scheduler) *Runner { return &Runner{core: guests.Get(s)} }

var guests = act.NewLocal(func(s *act.Scheduler) *core {
	c := newCore(act.Config{}, guest)
	c.attach(s)
	return c
})

// Runner runs the phases of tasklets. A tasklet is a member of the runner from the time it is scheduled or suspended
// until it returns Done. There are three kinds of runners: [NewRunner] returns one with a Run, [RunnerOf] one that uses
// an act.Scheduler that runs a server, [Inline] one that runs phases on the goroutine that schedules them.
//
// Any goroutine may call its methods unless they say otherwise. A phase gets its tasklet's own view of the runner,
// which differs only in that Run panics and Err is meaningful.
type Runner struct {
	core  *core
	entry *entry // nil unless it is the view of a tasklet
}

// Schedule makes t a member and sets where its next phase runs. The last Directive counts: Sync again moves t to the
// end of the queue, Wait and Done remove it. No phase runs in Schedule, except under Inline.
//
// During a phase of t, the Directive that the phase returns counts instead, except that its Wait ends at once if Sync
// or Async was scheduled in the phase. Scheduling Wait also takes back earlier Schedule and Resume calls. Done ends the
// membership, at the end of the present phase if there is one. If t is scheduled after that, it is a new member.
//
// The error is [ErrNotRunning] for an Async outside of Run; then nothing has changed. If the executor tried to run the
// phase at once, there is another error, and t is not a member.
func (r *Runner) Schedule(t Tasklet, d Directive) error {
	d.require()
	requireComparable(t)
	c := r.core
	c.mu.Lock()
	if c.closed || d == Async && c.monitor == nil {
		c.mu.Unlock()
		return ErrNotRunning
	}
	if d == Done && c.known[t] == nil {
		c.mu.Unlock()
		return nil
	}
	e := c.admit(t)
	c.say(e, d)
	c.unlock()
	if d != Async {
		return c.drain()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.refused { // the executor has tried at once
		return errSynchronous
	}
	return nil
}

// Suspend makes t a member that waits, and returns the [Rescheduler] that resumes it. Usually call it in a phase of t,
// give the Rescheduler to the code that will resume t, and return Wait; a Resume that comes first is kept. Outside of a
// phase, t waits from now on, unless it was resumed before.
func (r *Runner) Suspend(t Tasklet) Rescheduler {
	requireComparable(t)
	c := r.core
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return Rescheduler{err: ErrNotRunning}
	}
	e := c.admit(t)
	c.suspend(e)
	c.unlock()
	return Rescheduler{e: e}
}

// Run runs the members until none is left or a shutdown ends it. The goroutine is locked to its thread meanwhile. SYNC
// phases run on that thread, one at a time, in the order in which they were scheduled. Run waits for members that wait
// or are in an ASYNC phase.
//
// Run returns nil when no member is left, and a *shutdown.Cut when a shutdown has left some. These are forgotten if the
// policy says Drop, and otherwise kept for the next Run. A panic in a phase, or a Goexit in an ASYNC phase, fails the
// tasklet and is logged; Run goes on. A Goexit in a SYNC phase (a test's FailNow) ends the goroutine of Run: the
// tasklet is forgotten, Run does not return, and another goroutine may call Run for the others. The error also says so
// if the executor tried to run an ASYNC phase on the thread in Run.
//
// If another goroutine is in Run, Run blocks until that call has returned. It panics if the runner was made by Inline
// or RunnerOf, and inside a phase. It cannot detect that an ASYNC phase, or a phase run by With on another goroutine,
// calls Run on a view other than its own: that call blocks for ever.
func (r *Runner) Run() error {
	c := r.core
	switch {
	case r.entry != nil, c.here():
		panic("tasklet: Run was called inside a phase")
	case c.kind != owner:
		panic("tasklet: a runner made by Inline or RunnerOf has no Run of its own")
	}
	c.runs.Lock()
	defer c.runs.Unlock()
	runtime.LockOSThread() // so that Close is on the thread of Run, as coroutines require
	defer runtime.UnlockOSThread()
	a := act.New(c.config)
	defer func() { _ = a.Close() }() // what it drops was counted, or is kept here
	c.attach(a)
	defer c.detach()
	for {
		err := a.Run()
		if err != nil || !c.more() {
			return c.account(err)
		}
	}
}

// Shutdown asks the present Run, or the next one, to shut down: see [act.Scheduler.Shutdown]. A SYNC phase is a turn,
// an ASYNC phase is not, so a bound in turns alone does not end a tasklet that has only ASYNC phases. A waiting tasklet
// goes on waiting; an [act.Stopper] is told. During shutdown SYNC phases may run in another sequence than they were
// scheduled in. A runner of Inline ignores Shutdown; one of RunnerOf shuts its act.Scheduler down.
//
// A shutdown gives each task one turn at once: for a queued tasklet that is its SYNC phase, for the others an empty
// turn. So with a bound of n turns the others have n-1 SYNC phases left, and none with a bound of 1. A bound of 2 or
// more lets every tasklet merge the result of an ASYNC phase.
func (r *Runner) Shutdown(o shutdown.Order) {
	if o == nil {
		panic("tasklet: Shutdown without an order")
	}
	c, g := r.core, &given{order: o}
	if a := r.Act(); a != nil && c.kind == owner {
		g.begin(a.Clock().Monotonic())
	}
	c.mu.Lock()
	if c.kind == owner {
		c.orders = append(c.orders, g)
	}
	m := c.monitor
	c.mu.Unlock()
	if m != nil {
		m.s.Shutdown(o)
	}
}

// Act returns the act.Scheduler of the present Run, or nil outside of Run. SYNC phases may spawn actions and make
// futures on it; Run waits for these tasks.
func (r *Runner) Act() *act.Scheduler {
	c := r.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.monitor == nil {
		return nil
	}
	return c.monitor.s
}
