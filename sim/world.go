package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Options are how a World is made. The zero Options are a world of seed 0 in which nothing goes wrong.
type Options struct {
	// Seed is what everything is drawn from.
	Seed uint64
	// Faults is what may go wrong.
	Faults Faults
	// Storm is for how long, on the world's clock; then the world is healed and everything has to come to its
	// end. 0 means a minute.
	Storm time.Duration
	// Calm is how long that may take. 0 means half an hour.
	Calm time.Duration
	// Steps bounds the steps of a Run. 0 means 20 million.
	Steps int
	// Stall is how many steps may pass without any progress: a byte that arrives, a client that goes on, a task that
	// comes or leaves, or a moment in which nobody has anything to do. 0 means a million.
	Stall int
	// Lines is how many of the last events a Failure shows. 0 means 60.
	Lines int
	// Panics allows tasks to panic, which otherwise fails the world.
	Panics bool
}

func (o Options) resolved() Options {
	if min(o.Storm, o.Calm) < 0 || min(o.Steps, o.Stall, o.Lines) < 0 {
		panic(fmt.Sprintf("sim: Options with a negative bound: %+v", o))
	}
	if o.Storm == 0 {
		o.Storm = time.Minute
	}
	if o.Calm == 0 {
		o.Calm = 30 * time.Minute
	}
	if o.Steps == 0 {
		o.Steps = 20_000_000
	}
	if o.Stall == 0 {
		o.Stall = 1_000_000
	}
	if o.Lines == 0 {
		o.Lines = 60
	}
	return o
}

// World is a simulated world: servers and clients on one clock and one network, in which everything that is
// not decided by their code is drawn from a seed. The same seed and scenario give the same history. It is for
// one goroutine, which a Run locks to its thread.
type World struct {
	options Options
	dice    [purposes]dice
	now     time.Duration
	skew    time.Duration // of the wall clock
	agenda  agenda
	history history
	faults  Faults
	healed  bool // no more faults
	failure error
	servers []*Server
	clients []*Client
	excuse  func(*Client, error) bool
	open    int  // clients that have not finished
	planned int  // of At, and has not come yet
	closing bool // the servers have been told to end
	ran     bool
	able    []stepper // who can go on
	thread  uint64    // of Run; 0: not in Run
	stats   stats
	moved   int // the step of the latest progress
	net     internet
}

// stepper is who takes steps: a scheduler or a client. place is where it is in World.able, -1 if it is not.
type stepper interface {
	step()
	place() *int
}

// stats is what has happened in a World.
type stats struct {
	time   time.Duration // simulated
	steps  int
	turns  int
	faults int
	broken int // connections that a fault has refused, or ended by a reset
	events uint64
	hash   uint64 // of the whole history
}

// New returns an empty World.
func New(o Options) *World {
	w := &World{options: o.resolved(), faults: o.Faults}
	for p := range purposes {
		w.dice[p] = newDice(o.Seed, p)
	}
	w.history.last = make([]line, w.options.Lines)
	w.net.init(w)
	return w
}

// soFar returns what has happened so far.
func (w *World) soFar() stats {
	s := w.stats
	s.time, s.events, s.hash = w.now, w.history.events, w.history.hash
	return s
}

// Now is the world's time, from 0.
func (w *World) Now() time.Duration { return w.now }

// At has f called when the world's clock reaches at, to give an order, say. Until the end of the storm the world
// waits for what is planned so, even if all clients have finished.
func (w *World) At(at time.Duration, f func()) {
	w.planned++
	w.agenda.add(max(at, w.now), todo(func() {
		w.planned--
		f()
	}))
}

// todo is an event of one function.
type todo func()

func (f todo) fire() { f() }

// after has e fire d from now.
func (w *World) after(d time.Duration, e event) { w.agenda.add(w.now+d, e) }

func (w *World) note(k what, who actor, a, b int64) {
	switch k {
	case clockJumps, isSpawned, isEnded, bytesArrive, endArrives, resetArrives, clientDoes:
		w.moved = w.stats.steps
	}
	w.history.note(w.now, k, who, a, b)
}

// fault draws whether a fault happens, and notes it.
func (w *World) fault(weight *int, who actor) bool {
	return w.strikes(*weight, who, w.faults.index(weight))
}

// strikes is fault by the place of the fault's name.
func (w *World) strikes(weight int, who actor, name int64) bool {
	if w.healed || !w.dice[faults].happens(weight) {
		return false
	}
	w.stats.faults++
	w.note(faultHappens, who, name, 0)
	return true
}

// Happens draws whether a fault of the scenario's own happens, of a disk, say: never once the world is healed.
func (w *World) Happens(weight int) bool {
	return w.strikes(weight, nil, int64(len(faultNames)-1))
}

// wrong notes that something is not as it must be. The first time counts.
func (w *World) wrong(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

// Errorf fails the world: for what scenarios and scripts find wrong themselves.
func (w *World) Errorf(format string, args ...any) { w.wrong(format, args...) }

// Excuse has f asked about errors of scripts that the world does not excuse by itself: those that a server passes on
// from another connection, say.
func (w *World) Excuse(f func(c *Client, err error) bool) { w.excuse = f }

// Rand draws from the workload, for what a scenario decides while it is set up.
func (w *World) Rand() *rand.Rand { return rand.New(&w.dice[workload]) }

// Failure is what Run returns when something was not as it must be.
type Failure struct {
	Seed   uint64
	Err    error  // what was wrong
	Waits  string // who waits for what, a line each
	Events string // the last events, a line each
	stats  stats
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%v\n  in the world of seed %d, after %v, %d turns and %d faults\nthe last events:\n%s%s",
		f.Err, f.Seed, f.stats.time, f.stats.turns, f.stats.faults, f.Events, f.Waits)
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Run lets the world go on until all clients have finished, gives the servers an order to end, and sees to it
// that they do and leave nothing behind. The error is a *Failure.
func (w *World) Run() error {
	if w.ran {
		panic("sim: a World runs once")
	}
	w.ran = true
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.thread = thread.ID()
	defer func() { w.thread = 0 }()
	w.agenda.add(w.now+w.options.Storm, todo(w.heal))
	w.until("every client has finished", w.options.Storm+w.options.Calm, func() bool {
		return w.open == 0 && (w.planned == 0 || w.now >= w.options.Storm)
	})
	w.closing = true
	w.endServers()
	w.endClients()
	w.endNetwork()
	if w.failure == nil {
		return nil
	}
	return &Failure{w.options.Seed, w.failure, w.waits(), w.history.tail(), w.soFar()}
}

// heal ends all faults.
func (w *World) heal() {
	w.healed = true
	w.net.heal()
	for _, s := range w.servers {
		s.executor.heal()
	}
}

// until takes steps until f, and fails if that does not come before a point in time.
func (w *World) until(what string, deadline time.Duration, f func() bool) {
	for w.failure == nil && !f() {
		switch {
		case w.stats.steps >= w.options.Steps:
			w.wrong("not in %d steps: %s", w.options.Steps, what)
		case w.stats.steps-w.moved > w.options.Stall:
			w.wrong("no progress in %d steps, and not yet: %s", w.options.Stall, what)
		case w.now > deadline:
			w.wrong("not until %v: %s", deadline, what)
		case !w.step():
			w.wrong("deadlock: nothing is runnable and nothing is pending, but not yet: %s", what)
		}
	}
}

// step has somebody do something, or lets time pass until somebody can. It reports whether there was anything
// to do.
func (w *World) step() bool {
	w.stats.steps++
	for at, ok := w.agenda.next(); ok && at <= w.now && w.stats.steps <= w.options.Steps; at, ok = w.agenda.next() {
		w.stats.steps++
		w.agenda.take().fire()
	}
	if w.stats.steps%auditEvery == 0 {
		w.audit()
	}
	if n := len(w.able); n > 0 {
		w.able[w.dice[schedule].below(n)].step()
		return true
	}
	at, ok := w.agenda.next()
	if !ok {
		return false
	}
	if at > w.now { // what has just fired may have made something due
		w.note(clockJumps, nil, int64(at-w.now), 0)
		w.now = at
		w.look()
	}
	return true
}

// look is taken when nobody can go on.
func (w *World) look() {
	for _, v := range w.servers {
		v.punctual()
	}
	if w.fault(&w.faults.WallJump, nil) {
		w.skew += w.dice[faults].duration(-24*time.Hour, 24*time.Hour)
	}
}

// auditEvery is how many steps there are between two looks at everything.
const auditEvery = 256

// enable lets x have steps.
func (w *World) enable(x stepper) {
	if p := x.place(); *p < 0 {
		*p = len(w.able)
		w.able = append(w.able, x)
	}
}

// disable takes x out of those who can go on.
func (w *World) disable(x stepper) {
	p := x.place()
	if *p < 0 {
		return
	}
	last := len(w.able) - 1
	moved := w.able[last]
	w.able[*p] = moved
	*moved.place() = *p
	w.able[last] = nil
	w.able = w.able[:last]
	*p = -1
}

// clock is what a Server takes for the time.
type clock struct{ w *World }

func (c clock) Monotonic() time.Duration { return c.w.now }
func (c clock) Wall() time.Time          { return epoch.Add(c.w.now + c.w.skew) }

// epoch is when all worlds begin.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// endServers gives those that have not ended an order, and looks at what is left when they have.
func (w *World) endServers() {
	if w.failure != nil {
		return
	}
	w.heal()
	for _, s := range w.servers {
		if s.order == nil {
			s.Shutdown(shutdown.Now{Terms: shutdown.Policy{Time: shutdown.Grace, Drop: true}})
		}
	}
	for _, s := range w.servers {
		w.until(s.name+" has ended", w.now+w.options.Calm, s.ended)
	}
	for _, s := range w.servers {
		s.close()
	}
}

// endNetwork lets what is still on its way arrive, and looks for what is never going to.
func (w *World) endNetwork() {
	end := w.now + w.options.Calm
	for w.failure == nil && len(w.net.connections) > 0 && w.now <= end && w.step() {
		continue
	}
	for _, c := range w.net.left() {
		w.wrong("a connection is left over: %v", c)
	}
}

// foreign panics if the goroutine is not the world's.
func (w *World) foreign(s *act.Scheduler) {
	if w.thread != 0 && thread.ID() != w.thread {
		panic(fmt.Sprintf("sim: a goroutine that is not part of the world has left something for scheduler %d: "+
			"what it does cannot be replayed; let the Executor or a Client do it", s.Index()))
	}
}
