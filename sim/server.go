package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/shutdown"
)

const (
	// atATime bounds the turns of a step.
	atATime = 8
	// A turn takes turnTime on the world's clock, and a step takes passTime on top of its turns.
	turnTime = time.Microsecond
	passTime = 300 * time.Nanosecond
)

// Server is a program in the world: an [act.Group] with descriptors of its own. [World.Server] makes it.
type Server struct {
	w       *World
	name    string
	group   *act.Group
	runners []*runner
	kernel  *kernel
	order   shutdown.Order // the last one
	dues    []due          // of the orders that give a limit
	errors  []error        // of its schedulers
	closed  bool
}

// Server adds a server: it makes a Group and calls the set-up functions for each scheduler, as Group.Run does. The world
// replaces the fields Clock, Executor, Idle and Threads of cfg. 0 Schedulers means one, and without a Logger nothing is
// logged. An error is that of a set-up function.
func (w *World) Server(name string, cfg act.Config, setup ...func(*act.Scheduler) error) (*Server, error) {
	v := &Server{w: w, name: name}
	v.kernel = newKernel(v)
	cfg.Clock, cfg.Executor, cfg.Idle, cfg.Threads = clock{w}, &executor{w}, nil, act.Stepped
	cfg.Schedulers = max(1, cfg.Schedulers)
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	cfg.TurnsPerPass = cmp.Or(cfg.TurnsPerPass, 64)
	cfg.Trace = act.MultiTrace(v.trace(), cfg.Trace)
	w.servers = append(w.servers, v)
	v.group = act.NewGroup(cfg)
	for _, s := range v.group.Schedulers() {
		r := &runner{server: v, w: w, s: s, model: model{turns: cfg.TurnsPerPass, tasks: map[*act.Task]*task{}, kinds: map[string]*kind{}}}
		v.runners = append(v.runners, r)
		v.observe(r)
		budget.Of(s) // also without connections
		engine.Below.Put(s, &view{kernel: v.kernel, r: r})
		monitor.SetResolver(s, &w.net)
	}
	for _, r := range v.runners {
		for _, f := range setup {
			if err := f(r.s); err != nil {
				w.Errorf("%v: setting up: %w", v, err)
				return nil, errors.Join(err, v.group.Close())
			}
		}
		r.wake()
	}
	return v, nil
}

// String returns the name that [World.Server] was given.
func (v *Server) String() string { return v.name }

// due is when a server must have ended, by one of its shutdown requests.
type due struct {
	order shutdown.Order
	at    time.Duration
}

// Shutdown tells the server to shut down, as [act.Group.Shutdown] does. The world checks that the server ends within
// the policy.
func (v *Server) Shutdown(o shutdown.Order) { v.group.Shutdown(o) }

// Withdraw takes back a shutdown that is only announced, as [act.Group.Withdraw] does, and reports whether it did.
func (v *Server) Withdraw(o shutdown.Order) bool {
	was := v.group.Withdraw(o)
	if was {
		v.dues = slices.DeleteFunc(v.dues, func(d due) bool { return d.order == o })
	}
	return was
}

// ordered is called for each shutdown request to one of the schedulers. Several requests merge to the strictest.
func (v *Server) ordered(r *runner, o shutdown.Order) {
	r.orders++
	r.newer = r.spawned
	v.order = o
	terms := o.Policy().Resolved()
	switch {
	case terms.Kind == shutdown.Halt, terms.Kind == shutdown.Suspend:
		v.dues = append(v.dues, due{o, v.w.now + terms.Announce + slack})
	case terms.Kind == shutdown.Bounded && terms.Time > 0:
		v.dues = append(v.dues, due{o, v.w.now + terms.Time + slack})
	}
}

// slack is how long after the Time of its policy a server may end.
const slack = 100 * time.Millisecond

// Ended reports whether all schedulers of the server have ended, as they do after a shutdown.
func (v *Server) Ended() bool {
	return !slices.ContainsFunc(v.runners, func(r *runner) bool { return !r.over })
}

// checkDeadline checks that no scheduler runs for longer than its policy allows.
func (v *Server) checkDeadline() {
	for _, r := range v.runners {
		for _, d := range v.dues {
			if !r.over && v.w.now > d.at {
				v.w.Errorf("%v still runs at %v, and should have ended by %v, for its order %v", r, v.w.now, d.at, d.order)
			}
		}
	}
}

// Err returns the joined errors of the schedulers that have ended: nil, a *shutdown.Cut for work that was unfinished at
// the end, or why one of them failed.
func (v *Server) Err() error { return errors.Join(v.errors...) }

// close closes the Group, and checks that it leaves nothing behind.
func (v *Server) close() {
	if v.closed || v.w.failure != nil {
		return
	}
	v.w.audit()
	v.closed = true
	var budgets []*budget.Budget // of which a closed scheduler knows no more
	for _, r := range v.runners {
		budgets = append(budgets, budget.Of(r.s))
	}
	if err := v.group.Close(); err != nil {
		var cut *shutdown.Cut
		if !errors.As(err, &cut) {
			v.w.Errorf("%s: closing: %w", v, err)
		}
	}
	for _, f := range v.kernel.files {
		if f != nil {
			v.w.Errorf("%s has left a descriptor open: %v", v, f)
		}
	}
	for i, r := range v.runners {
		for _, x := range r.sorted() {
			v.w.Errorf("%v %v, but its scheduler is closed", x, x.state)
		}
		if n := budgets[i].Total(); n != 0 {
			v.w.Errorf("%v: %d bytes of memory are counted for connections, and all of them are closed", r, n)
		}
	}
}

// runner is one scheduler of a Server. The world steps it.
type runner struct {
	server  *Server
	w       *World
	s       *act.Scheduler
	planned time.Duration // when it is stepped again; 0: never
	woken   bool          // in this step, or since
	over    bool          // it has ended
	accepts int           // calls in this turn
	orders  int           // given to it
	newer   uint64        // tasks with a higher number came after the last of them
	begun   uint64        // turns
	pressed time.Duration // its inbox is kept full until then
	lent    []netpoll.Packet

	model
}

func (r *runner) String() string { return fmt.Sprintf("%s/%d", r.server.name, r.s.Index()) }
func (r *runner) number() uint64 {
	return numbersOfRunners | r.server.kernel.id<<32 | uint64(r.s.Index())
}

// wake lets the runner take steps again, because something has happened.
func (r *runner) wake() {
	r.woken = true
	if !r.over {
		r.w.enable(r)
	}
}

func (r *runner) enabled() bool { return slices.Contains(r.w.able, stepper(r)) }

// fire is called at the time planned.
func (r *runner) fire() {
	if r.planned > 0 && r.planned <= r.w.now {
		r.planned = 0
	}
	r.wake()
}

// step takes a few turns. A runner without work rests until something happens or is due.
func (r *runner) step() {
	w := r.w
	if r.server.order == nil && w.now >= r.pressed && w.fault(fullInbox, r) {
		r.press()
	}
	r.woken = false
	n := 1 + w.dice[schedule].below(atATime)
	before, passes := r.s.Internals().Concluded(), r.passes
	taken, err := r.s.Step(n)
	w.stats.turns += taken
	w.now += passTime
	if err != nil || r.s.Internals().Concluded() > before {
		r.end(err)
		return
	}
	if taken == n || r.woken {
		return
	}
	at, ok := r.s.NextDeadline()
	if ok && at <= w.now {
		if r.passes > passes || !r.s.Finished() { // a pass that an earlier step began may have ended in this one
			return
		}
		ok = false // nothing is left on any scheduler, so no pass begins in which a timer could fire
	}
	if ready := len(r.queue) + len(r.demons); ready > 0 && !r.bounded && !r.s.Finished() { // attached demons do not keep Run from returning
		w.Errorf("%v rests, but %d tasks and demons are ready", r, ready)
	}
	w.disable(r)
	if ok && (r.planned == 0 || at < r.planned) {
		r.planned = at
		w.agenda.add(at, r)
	}
}

// end records that the scheduler has ended.
func (r *runner) end(err error) {
	r.server.checkDeadline()
	r.over = true
	r.w.disable(r)
	for _, x := range r.sorted() {
		unbegun := x.state == ready && x.serial > r.newer // it would be notified before its first turn, which does not come
		if o := r.server.order; o != nil && x.notified == 0 && x.state != away && !unbegun && !x.last && o.Policy().Kind != shutdown.Suspend {
			r.w.Errorf("%v was not notified of the order", x)
		}
	}
	var cut *shutdown.Cut
	if err != nil {
		r.server.errors = append(r.server.errors, err)
		if !errors.As(err, &cut) {
			r.w.Errorf("%v failed: %w", r, err)
		}
	}
	if r.server.Ended() {
		r.w.after(0, r.server.close) // the program ends
	}
}

// press fills the inbox of the scheduler and keeps it full for a while: a function that is posted posts further ones, as far as
// there is room. On the scheduler's own thread a Post does not wait.
func (r *runner) press() {
	w := r.w
	r.pressed = w.now + w.lasts(latencyHigh, 5*time.Millisecond)
	var fill func(*act.Scheduler)
	fill = func(s *act.Scheduler) {
		w.now += turnTime
		for w.now < r.pressed && s.Post(fill) == nil {
			continue
		}
	}
	r.s.Spawn(act.Func(func(*act.Task) act.Directive {
		fill(r.s)
		return act.Done
	}))
}
