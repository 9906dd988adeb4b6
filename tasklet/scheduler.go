package tasklet

import (
	"runtime"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// API says how schedulers are made and where their ASYNC phases run. The zero API is good. It is a value
// to be handed on: what a phase needs to make another scheduler like its own is s.API().New().
type API struct {
	// NewScheduler makes the scheduler beneath, anew for each Run, which closes it in the end. nil means
	// act.New(act.Config{}). Here a Trace, a Logger, a Clock come in. It must return one that is in no
	// Group with others and that nobody else runs.
	NewScheduler func() *act.Scheduler

	// Executor runs ASYNC phases; nil means the one of the scheduler beneath, which has at most 64
	// goroutines. One that would run them on the thread in Run is found out when it tries: see
	// ErrSynchronous.
	Executor act.Executor
}

// New returns a scheduler made and run as a says. Any goroutine.
func (a API) New() *Scheduler { return newCore(a, owner).root() }

func (a API) scheduler() *act.Scheduler {
	if a.NewScheduler == nil {
		return act.New(act.Config{})
	}
	s := a.NewScheduler()
	if s == nil {
		panic("tasklet: API.NewScheduler returned no scheduler")
	}
	return s
}

// NewScheduler returns the scheduler of the zero API. Any goroutine.
func NewScheduler() *Scheduler { return API{}.New() }

// On returns a scheduler whose tasklets are tasks of s beside others, on a reactor of a Group or in a
// simulation: SYNC phases are turns of s, the members hold the Run of s, its orders and its Close are theirs.
// It has no Run of its own, and counts as running from now on until s is closed. Each s has one: who asks again
// shares its tasklets with who asked before, so a service may ask at every request. On belongs to the thread of s,
// as Spawn does.
func On(s *act.Scheduler) *Scheduler { return guests.Get(s).root() }

var guests = act.NewLocal(func(s *act.Scheduler) *core {
	c := newCore(API{}, guest)
	c.attach(s)
	return c
})

// Scheduler keeps tasklets, its members, from when they are scheduled or suspended until they answer Done,
// and runs their phases. There are three kinds: those of API.New have a Run, those of On are guests of a
// scheduler that somebody else runs, those of Inline run phases where they are scheduled.
//
// Any goroutine may call its methods but where it says otherwise. A phase is given its tasklet's own view
// of the scheduler: the same but for Run, which is refused there.
type Scheduler struct {
	core  *core
	entry *entry // whose view it is; nil: nobody's
}

// API is what s was made with.
func (s *Scheduler) API() API { return s.core.api }

// Schedule says where the next phase of t is to run, and makes t a member. The last word counts, and a
// tasklet has at most one place: SYNC again moves it to the end of the queue, WAIT and DONE take it out.
// Under Run it only notes that; no phase runs in Schedule, but see Inline.
//
// Said during a phase of t, it is the phase's answer that counts, except that a Wait ends at once if Sync or
// Async was said. Wait also takes back what was said and resumed before. Done is final: this life of t is
// over, at the end of the phase it is in if it is in one. Scheduled again, t begins another.
//
// It returns ErrIncomparable, ErrNotRunning for an ASYNC outside of Run, and ErrSynchronous if the executor
// tried to run the phase there and then. After an error t is where it was, after ErrSynchronous it is gone.
func (s *Scheduler) Schedule(t Tasklet, d Directive) error {
	d.require()
	if err := identify(t); err != nil {
		return err
	}
	c := s.core
	c.mu.Lock()
	if c.closed || d == Async && c.desk == nil {
		c.mu.Unlock()
		return ErrNotRunning
	}
	e := c.known[t]
	if e == nil {
		if d == Done {
			c.mu.Unlock()
			return nil
		}
		e = c.admit(t)
	}
	c.say(e, d)
	c.unlock()
	if d == Async {
		return e.refusal()
	}
	return c.drain()
}

// Suspend makes t wait, and a member, and returns the right to resume it. It takes nothing back that was
// resumed before: then t does not wait. During a phase of t, which is where it is mostly called, t goes on
// as the phase answers; a resumption that comes before a Wait is remembered for that Wait.
func (s *Scheduler) Suspend(t Tasklet) Rescheduler {
	if err := identify(t); err != nil {
		return Rescheduler{err: err}
	}
	c := s.core
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return Rescheduler{err: ErrNotRunning}
	}
	e := c.known[t]
	if e == nil {
		e = c.admit(t)
	}
	c.suspend(e)
	c.unlock()
	return Rescheduler{e: e}
}

// Run runs the members until none is left, or an order ends it. The goroutine is locked to its thread
// meanwhile: that is the synchronous thread, on which SYNC phases run, one at a time, in the order of their
// scheduling. Members that wait or are in an ASYNC phase are waited for.
//
// It returns nil after a complete end, and a *shutdown.Cut when an order left something: forgotten if the
// order drops, otherwise kept for the next Run. A panic in a phase fails that tasklet and is reported by the
// scheduler beneath; Run goes on. A Goexit in an ASYNC phase is such a panic. One in a SYNC phase, a test's FailNow
// say, ends the goroutine of Run: its tasklet is forgotten, Run does not return, and another may run the others.
// ErrSynchronous is joined to the rest if the executor earned it.
//
// If another goroutine is in Run, it blocks until that has left, and then runs what there is. Inside a phase
// it returns ErrNested. (What it cannot notice is a phase that uses a handle other than its own elsewhere than on the
// thread in Run: an ASYNC phase, or one of With, also outside of Run, waits for itself there, for ever.)
func (s *Scheduler) Run() error {
	c := s.core
	switch {
	case s.entry != nil, c.here():
		return ErrNested
	case c.kind != owner:
		return ErrNoRun
	}
	c.runs.Lock()
	defer c.runs.Unlock()
	runtime.LockOSThread() // Close is to be on the thread of Run: there may be coroutines
	defer runtime.UnlockOSThread()
	a := c.api.scheduler()
	defer func() { _ = a.Close() }() // what it drops has been counted, or is kept here
	c.attach(a)
	defer c.detach()
	for {
		err := a.Run()
		if err != nil || !c.more() {
			return c.account(err)
		}
	}
}

// Shutdown gives an order to the present Run, or to the next if there is none: see act.Scheduler.Shutdown
// for what becomes of it. A SYNC phase is a turn; ASYNC phases are none, so that a bound in turns alone does
// not end a tasklet that goes from one to the next. A tasklet that waits is woken for nothing: who wants to
// know of the end is a Stopper. Under an order SYNC phases may run in another order than they were scheduled
// in. The scheduler of an Inline obeys nobody; one made by On passes it on to all that share its s.
//
// To be told makes everybody ready once, and that is a turn: a SYNC phase of who queues, an empty one of who
// waits or is in an ASYNC phase. So under Turns: n those have n-1 SYNC phases left, and under Turns: 1 none: they
// are cut when they come to it. Turns: 2 and more let everybody merge what an ASYNC phase has found.
func (s *Scheduler) Shutdown(o shutdown.Order) {
	if o == nil {
		panic("tasklet: Shutdown without an order")
	}
	c, g := s.core, &given{order: o}
	if a := s.Act(); a != nil && c.kind == owner {
		g.terms, _ = g.terms.Merge(o.Policy(), a.Clock().Monotonic())
	}
	c.mu.Lock()
	if c.kind == owner {
		c.orders = append(c.orders, g)
	}
	d := c.desk
	c.mu.Unlock()
	if d != nil {
		d.s.Shutdown(o)
	}
}

// Order is the latest order that made the terms of this Run stricter, nil if there is none.
func (s *Scheduler) Order() shutdown.Order {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order
}

// Act is the scheduler beneath, for what SYNC phases want of it: to spawn actions, to make futures. It
// holds Run for them. nil outside of Run.
func (s *Scheduler) Act() *act.Scheduler {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.desk == nil {
		return nil
	}
	return c.desk.s
}
