package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Options configure a World. The zero value is a world of seed 0 without faults.
type Options struct {
	// Seed determines everything that the world draws at random: the same seed gives the same history.
	Seed uint64
	// Faults says which faults happen, and how often: see [Anything]. The zero Faults has none.
	Faults Faults
	// Storm is how long faults happen, on the world's clock. After it there are none, and every client must come to
	// its end. 0 means a minute.
	Storm time.Duration
	// Panics allows tasks to panic, for servers that are meant to survive that. Otherwise a panic fails the world.
	Panics bool

	lines int // that a Failure shows; 0 means 60
}

const (
	// calm is how long the clients may take to end after the storm, and then a server to end.
	calm = 30 * time.Minute
	// mostSteps bounds the steps of Run, and mostIdle the ones without progress: see note.
	mostSteps = 20_000_000
	mostIdle  = 1_000_000
)

// World is a simulated world: servers and clients with one clock and one network. Everything that their code does not
// decide is drawn from the seed, so the same seed and scenario give the same history. Only one goroutine may use a
// World; Run locks it to its thread.
type World struct {
	options Options
	dice    [purposes]dice
	now     time.Duration
	skew    time.Duration // of the wall clock
	lasting time.Duration // until then faults have an effect
	agenda  agenda
	history history
	faults  Faults
	healed  bool // no more faults
	failure error
	servers []*Server
	clients []*Client
	later   []func() // add the clients after the storm
	excuse  func(*Client, error) bool

	functions []*routine // that may block
	begun     int        // how many there were
	present   *routine   // the one whose step it is

	open    int  // clients that have not finished
	planned int  // functions given to At that were not called yet
	closing bool // the servers were told to shut down
	ran     bool
	able    []stepper // all that can run
	thread  uint64    // of Run; 0: not in Run
	stats   stats
	steps   int
	moved   int // the step of the last progress
	net     internet
}

// stepper takes steps: a scheduler, or a routine.
type stepper interface{ step() }

// stats counts the events in a World.
type stats struct {
	time   time.Duration // simulated
	turns  int
	faults int
	bites  [kinds]int
	broken int // connections that a fault has refused or reset
	events uint64
	hash   uint64 // of the whole history
}

// New returns a World without servers and clients. Add them, and call [World.Run]. Tests use [Test], which does this for many
// seeds.
func New(o Options) *World {
	if o.Storm < 0 {
		panic(fmt.Sprintf("sim: Options with a Storm of %v", o.Storm))
	}
	o.Storm = cmp.Or(o.Storm, time.Minute)
	w := &World{options: o, faults: o.Faults}
	for p := range purposes {
		w.dice[p] = newDice(o.Seed, p)
	}
	w.history.last = make([]line, cmp.Or(o.lines, 60))
	w.net = internet{w: w, ephemeral: firstEphemeral, files: map[string]*listening{},
		hosts: map[string][]netip.Addr{}, delays: map[netip.Addr]time.Duration{}}
	return w
}

// soFar returns the counts up to now.
func (w *World) soFar() stats {
	s := w.stats
	s.time, s.events, s.hash = w.now, w.history.events, w.history.hash
	return s
}

// Now returns the world's time, which starts at 0 and passes only in Run.
func (w *World) Now() time.Duration { return w.now }

// At calls f when the world's clock reaches at, to shut a server down, for example. Until the end of the storm the
// world waits for such calls, even if all clients have finished.
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

// after calls f after d.
func (w *World) after(d time.Duration, f func()) { w.agenda.add(w.now+d, todo(f)) }

// note records an event. A byte that arrives, a client's call that returns, a task that starts or ends, and a time in which nothing
// can run are progress.
func (w *World) note(k eventKind, who subject, a, b int64) {
	switch k {
	case clockJumps, isSpawned, isEnded, bytesArrive, endArrives, resetArrives, clientReads, clientWrites, clientEnds, clientCloses, clientAborts:
		w.moved = w.steps
	}
	w.history.note(w.now, k, who, a, b)
}

// fault draws whether a fault happens that has its effect at once, and records it.
func (w *World) fault(f fault, who subject) bool {
	if !w.draws(f) {
		return false
	}
	w.bites(f, who)
	return true
}

// draws draws whether a fault happens. When it has its effect, bites is called.
func (w *World) draws(f fault) bool { return !w.healed && w.dice[faults].happens(w.faults.weights[f]) }

func (w *World) bites(f fault, who subject) {
	w.stats.faults++
	w.stats.bites[f]++
	kind := faultAt
	if who == nil {
		kind = faultHappens
	}
	w.note(kind, who, int64(f), 0)
}

// lasts draws for how long a fault has an effect.
func (w *World) lasts(least, most time.Duration) time.Duration {
	d := w.dice[faults].duration(least, most)
	w.lasting = max(w.lasting, w.now+d)
	return d
}

// Happens draws whether a fault of the scenario's own happens, of a disk, for example: weight out of 65,536 times,
// and never after the storm.
func (w *World) Happens(weight int) bool {
	if w.healed || !w.dice[faults].happens(weight) {
		return false
	}
	w.bites(ofScenario, nil)
	return true
}

// Errorf fails the world with the error of fmt.Errorf. Only the first failure is kept. Scenarios and scripts call it for
// mistakes that they find themselves.
func (w *World) Errorf(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

// Excuse sets a function that is asked about each error of a script that neither a fault nor a shutdown explains. If it
// returns true, the error does not fail the world. The test of a proxy needs it, since a proxy passes on resets of its
// other side.
func (w *World) Excuse(f func(c *Client, err error) bool) { w.excuse = f }

// Rand returns random numbers for the scenario, which depend on the seed only. Clients have their own: see [Client.Rand].
func (w *World) Rand() *rand.Rand { return rand.New(&w.dice[workload]) }

// Failure is the error of [World.Run]: the first violation of a promise, or the first unexplained error of a script.
type Failure struct {
	Seed   uint64 // the seed of the world, which SIM_SEED=n repeats: see Test
	Err    error  // what went wrong, without the report
	report string // the rest
}

// Error returns a report of several lines: what went wrong, the seed, when it happened, the last events, and what each task
// and client waits for.
func (f *Failure) Error() string {
	return fmt.Sprintf("%v\n  seed %d, %s", f.Err, f.Seed, f.report)
}

// Unwrap returns Err, for errors.Is and errors.As.
func (f *Failure) Unwrap() error { return f.Err }

// Run runs the world until all clients have finished, including the clients of [World.ClientAfterStorm], which come
// last. Then it shuts the servers down, and checks that they end in time and leave nothing behind. The error is a
// [*Failure]. Run can be called once. [Test] calls it for you.
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
	w.until("every client to finish", w.options.Storm+calm, func() bool {
		return w.open == 0 && (w.planned == 0 || w.now >= w.options.Storm)
	})
	if w.later != nil {
		w.runLater()
	}
	w.closing = true
	w.endServers()
	w.endNetwork()
	w.endRoutines()
	if w.failure == nil {
		return nil
	}
	return &Failure{w.options.Seed, w.failure, fmt.Sprintf("after %v of the world's time, %d turns and %d faults\nthe last events:\n%s%s",
		w.now, w.stats.turns, w.stats.faults, w.history.tail(), w.waits())}
}

// runLater runs the clients after the storm.
func (w *World) runLater() {
	w.heal()
	at := max(w.now, w.lasting)
	w.agenda.add(at, todo(func() {
		for _, add := range w.later {
			add()
		}
		w.later = nil
	}))
	w.until("the clients after the storm to finish", at+calm, func() bool { return w.open == 0 && w.later == nil })
}

// heal ends the storm, and faults that last. A clogged link opens by itself, in at most 10 s.
func (w *World) heal() {
	w.healed = true
	for _, s := range w.servers {
		s.kernel.short = 0
	}
}

// until takes steps until f returns true. The world fails if that takes too long; what names what it waits for.
func (w *World) until(what string, deadline time.Duration, f func() bool) {
	for w.failure == nil && !f() {
		switch {
		case w.steps >= mostSteps:
			w.Errorf("still waiting for %s after %d steps", what, mostSteps)
		case w.steps-w.moved > mostIdle:
			w.Errorf("still waiting for %s, without progress in %d steps", what, mostIdle)
		case w.now > deadline:
			w.Errorf("still waiting for %s at %v", what, deadline)
		case !w.step():
			w.Errorf("deadlock: still waiting for %s, but nothing can run and nothing is pending", what)
		}
	}
}

// step lets something run, or lets time pass until something can. It reports whether there was anything to do.
func (w *World) step() bool {
	w.steps++
	for at, ok := w.agenda.next(); ok && at <= w.now && w.steps <= mostSteps; at, ok = w.agenda.next() {
		w.steps++
		w.agenda.take().fire()
	}
	if w.steps%auditEvery == 0 {
		w.audit()
	}
	w.resume()
	if n := len(w.able); n > 0 {
		w.able[w.dice[schedule].below(n)].step()
		return true
	}
	at, ok := w.agenda.next()
	if !ok {
		return false
	}
	if at > w.now { // it may be due already: what has just fired may have added it
		w.note(clockJumps, nil, int64(at-w.now), 0)
		w.now = at
		w.timePassed()
	}
	return true
}

// timePassed is called whenever time passes.
func (w *World) timePassed() {
	for _, v := range w.servers {
		v.checkDeadline()
	}
	if w.fault(wallJump, nil) {
		w.skew += w.dice[faults].duration(-24*time.Hour, 24*time.Hour)
	}
}

// auditEvery is the number of steps between two audits.
const auditEvery = 256

// enable lets x take steps.
func (w *World) enable(x stepper) {
	if !slices.Contains(w.able, x) {
		w.able = append(w.able, x)
	}
}

// disable stops x from taking steps.
func (w *World) disable(x stepper) {
	if i := slices.Index(w.able, x); i >= 0 {
		last := len(w.able) - 1
		w.able[i] = w.able[last]
		w.able = slices.Delete(w.able, last, last+1)
	}
}

// clock is the clock of all Servers.
type clock struct{ w *World }

func (c clock) Monotonic() time.Duration { return c.w.now }
func (c clock) Wall() time.Time          { return epoch.Add(c.w.now + c.w.skew) }

// epoch is when every world begins.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// endServers shuts down the servers that were not told to, and closes all of them when they have ended.
func (w *World) endServers() {
	if w.failure != nil {
		return
	}
	w.heal()
	for _, s := range w.servers {
		if s.group.Order() == nil {
			s.Shutdown(shutdown.Policy{})
		}
	}
	for _, s := range w.servers {
		w.until(s.name+" to end", w.now+calm, s.Ended)
	}
	for _, s := range w.servers {
		s.close()
	}
}

// endNetwork lets everything that is on its way arrive, and functions return. No connection may be left.
func (w *World) endNetwork() {
	end := w.now + calm
	for w.failure == nil && len(w.net.connections)+len(w.functions) > 0 && w.now <= end && w.step() {
		continue
	}
	for _, c := range w.net.connections {
		w.Errorf("a connection is left over: %v and %v", &c.ends[0], &c.ends[1])
	}
	for _, s := range w.net.packets {
		w.Errorf("a socket is left over: %v", s)
	}
}

// checkGoroutine panics unless it is called on the world's goroutine.
func (w *World) checkGoroutine(s *act.Scheduler) {
	if w.thread != 0 && thread.ID() != w.thread {
		panic(fmt.Sprintf("sim: a goroutine that is not part of the world has woken scheduler %d or posted to it. "+
			"What it does cannot be repeated: offload it, or let a Client do it", s.Index()))
	}
}
