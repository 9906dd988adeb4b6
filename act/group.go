package act

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Group is the set of schedulers of a server, with the Clock and Executor that they share. Run gives each scheduler a
// thread; a simulation steps all of them on one goroutine instead. Methods are for any goroutine where they say so; the
// others are for the owner of the Group, one call at a time.
type Group struct {
	cfg        Config
	schedulers []*Scheduler
	threads    []*worker // made by the first Run, parked between Runs

	orders orders
	drain  drain

	broadcasting sync.Mutex
	places       []uint64 // of the present broadcast

	running    atomic.Bool
	closed     bool
	runs       int           // Runs begun, so that the end of the context of one does not shut down the next
	active     atomic.Uint64 // the low half: active schedulers; the high half: how often one became active
	terminated atomic.Bool   // none has anything left: all may return from Run
}

// oneActive is what a scheduler that becomes active adds to Group.active.
const oneActive = 1<<32 | 1

// NewGroup returns a Group with its schedulers. Threads are started by the first Run. NewGroup panics if a field of cfg
// is wrong, such as a negative bound.
func NewGroup(cfg Config) *Group {
	g := &Group{cfg: cfg.resolved()}
	for i := range g.cfg.Schedulers {
		g.schedulers = append(g.schedulers, newScheduler(g, i))
	}
	g.drain.parts = make([]part, len(g.schedulers))
	g.places = make([]uint64, 0, len(g.schedulers))
	return g
}

// Schedulers returns all schedulers, by Index. Callers must not change the slice. Any goroutine.
func (g *Group) Schedulers() []*Scheduler { return g.schedulers }

// Shutdown asks all schedulers to shut down, as [Scheduler.Shutdown] does for one. It returns at once. Any goroutine.
func (g *Group) Shutdown(o shutdown.Order) { g.give(o, g.schedulers...) }

// Run makes a Group, runs it, and closes it. It returns the error of [Group.Run], or else that of [Group.Close].
//
//	err := act.Run(ctx, act.Config{}, server.Setup)
//
// While it runs, GOMAXPROCS is at least the number of schedulers plus two, unless the environment sets it, and the heap may
// grow by 8 MiB more between two garbage collections, unless the environment sets GOGC or GOMEMLIMIT.
func Run(ctx context.Context, cfg Config, setup ...func(*Scheduler) error) error {
	g := NewGroup(cfg)
	defer spareProcessors(len(g.schedulers))()
	defer runtime.KeepAlive(spareHeap())
	err := g.Run(ctx, setup...)
	if cut := g.Close(); err == nil {
		err = cut
	}
	return err
}

// spareProcessors raises GOMAXPROCS to n+2 and returns a function that restores it. One is for the garbage collector and the
// executor, which then need not interrupt a scheduler. One is idle: without it the runtime's monitor checks every 20 µs for
// threads in a system call, to take their processors away. A value that the runtime has chosen is restored by
// runtime.SetDefaultGOMAXPROCS: only then does the runtime go on following the CPUs and the quota of the process.
func spareProcessors(n int) (restore func()) {
	before := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" || before > n+1 {
		return func() {}
	}
	runtime.SetDefaultGOMAXPROCS() // the only way to learn the default
	if runtime.GOMAXPROCS(n+2) == before {
		return runtime.SetDefaultGOMAXPROCS
	}
	return func() { runtime.GOMAXPROCS(before) }
}

// spareHeap returns a block that the collector takes for live, so that it lets the heap grow by its size more before it
// collects: a server with many connections and little memory collected a hundred times a second. Nothing touches the block,
// so it takes no memory of the machine. Three times as much gained nothing in bench/nethttp.
func spareHeap() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, 8<<20)
}

// Run calls the set-up functions for one scheduler after another, each on its scheduler's thread, and then runs all
// schedulers until none of them has anything left. A scheduler that has nothing left waits for what others may post to
// it. If a set-up function returns an error, Run returns it before any turn. When ctx ends, all schedulers shut down by
// Config.Shutdown.
//
// Run returns nil if nothing is left, and one *shutdown.Cut for all schedulers if a shutdown left something. After any
// other error, except one of a set-up function, the Group cannot be used any more. Otherwise a Group may be run again.
func (g *Group) Run(ctx context.Context, setup ...func(*Scheduler) error) error {
	if g.cfg.Threads == Stepped {
		return errStepped
	}
	if !g.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer g.running.Store(false)
	if g.closed {
		return ErrClosed
	}
	g.runs++
	g.start()
	for _, s := range g.schedulers {
		for _, f := range setup {
			if err := g.threads[s.index].do(func() error { return f(s) }); err != nil {
				return err
			}
		}
	}
	run := g.runs
	defer context.AfterFunc(ctx, func() { g.fail(run, "the context has ended", context.Cause(ctx)) })()
	return g.runAll()
}

// fail shuts down because of an error.
func (g *Group) fail(run int, what string, err error) {
	g.Shutdown(cause{g.cfg.Shutdown, fmt.Errorf("%s: %w", what, err), run})
}

// runAll runs all schedulers at once. If one breaks down, the others shut down.
func (g *Group) runAll() error {
	g.terminated.Store(false)
	g.active.Store(uint64(len(g.schedulers)))
	for _, s := range g.schedulers {
		s.active = true
		s.exited.Store(false)
	}
	results := make(chan error, len(g.schedulers))
	for i, s := range g.schedulers {
		go func() {
			err := g.threads[i].do(func() error {
				defer g.probe(s)           // even if Run returns at once
				defer s.exited.Store(true) // what is in its inbox from then on waits for the next Run
				return s.Run()
			})
			if errors.Is(err, errLost) && s.broken != nil {
				err = s.broken // names the task
			}
			results <- err
		}()
	}
	var all []error
	for range g.schedulers {
		err := <-results
		all = append(all, err)
		if _, cut := errors.AsType[*shutdown.Cut](err); err != nil && !cut {
			g.fail(g.runs, "another scheduler broke down", err)
		}
	}
	return joined(all)
}

// joined returns the results of all schedulers as one error: all errors that are not Cuts, or else the sum of the Cuts.
func joined(results []error) (others error) {
	var sum *shutdown.Cut
	for _, err := range results {
		switch cut, ok := errors.AsType[*shutdown.Cut](err); {
		case !ok:
			others = errors.Join(others, err)
		case sum == nil:
			sum = cut
		default:
			merge.Add(sum, cut)
		}
	}
	if others != nil || sum == nil {
		return others
	}
	return sum
}

// Close drops what is left, closes all schedulers, each on its thread, and ends the threads. It returns a *shutdown.Cut
// if something was left. It fails while Run runs. [Run] calls it.
func (g *Group) Close() error {
	if !g.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer g.running.Store(false)
	g.closed = true
	var all []error
	for i, s := range g.schedulers {
		if g.threads == nil {
			all = append(all, s.Close())
		} else {
			all = append(all, g.threads[i].do(s.Close))
		}
	}
	for _, w := range g.threads {
		close(w.jobs)
	}
	g.threads, g.cfg.Draining, g.cfg.Idle = nil, nil, nil
	return joined(all)
}

// probe reports whether all schedulers of the Group have terminated. It is called by a scheduler that has nothing left;
// the last one to become passive detects the termination.
//
// A scheduler is active while it is counted in Group.active. Only an active one takes something out of its inbox or puts
// something into another's. So if none is active, each inbox is seen to be empty, and Group.active is still the same,
// then no scheduler has become active meanwhile: all inboxes were empty at once, and nothing can be left. The high half of
// Group.active counts, since one may have become active, sent something to an inbox that had been seen, and become passive.
func (g *Group) probe(s *Scheduler) bool {
	if g.cfg.Threads == Stepped {
		return g.allFinished()
	}
	if !g.running.Load() {
		return true // it is stepped or run by itself
	}
	if s.passing && !s.exited.Load() {
		return false // demons that still have their turn may do anything
	}
	if s.active {
		s.active = false
		g.active.Add(^uint64(0))
	}
	seen := g.active.Load()
	if uint32(seen) == 0 && g.inboxesEmpty() && g.active.Load() == seen && g.terminated.CompareAndSwap(false, true) {
		g.interruptOthers(s)
	}
	return g.terminated.Load()
}

// allFinished is probe for schedulers that are stepped.
func (g *Group) allFinished() bool {
	for _, other := range g.schedulers {
		if !other.exited.Load() && (other.passing || !other.Finished()) {
			return false
		}
	}
	return true
}

func (g *Group) interruptOthers(s *Scheduler) {
	for _, other := range g.schedulers {
		if other != s {
			other.interrupt()
		}
	}
}

func (g *Group) inboxesEmpty() bool {
	for _, s := range g.schedulers {
		if !s.exited.Load() && !s.inboxEmpty() {
			return false
		}
	}
	return true
}

// skipPass reports whether s is passive and its pass has nothing to take in, so that it need not become active: if those
// that never sleep became active in each pass, there would hardly ever be a moment at which none is.
func (g *Group) skipPass(s *Scheduler) bool {
	if s.active || !g.running.Load() || s.anyReady() || !s.inboxEmpty() {
		return false
	}
	due, ok := s.timers.Next()
	return !ok || due > int64(s.now)
}

// activate makes s active, before it takes from its inbox.
func (g *Group) activate(s *Scheduler) {
	if !s.active && g.running.Load() {
		s.active = true
		g.active.Add(oneActive)
	}
}

// worker is a goroutine that is locked to a thread of its own, which the runtime ends with it.
type worker struct {
	jobs    chan func() error
	results chan error
}

// start makes the threads, once.
func (g *Group) start() {
	if g.threads != nil {
		return
	}
	var cpus []int
	if g.cfg.Threads == Bound {
		if cpus = g.cfg.CPUs; len(cpus) == 0 {
			cpus = thread.LeastUsed(thread.CPUs())
		}
	}
	for i := range g.schedulers {
		w := &worker{make(chan func() error), make(chan error)}
		g.threads = append(g.threads, w)
		go w.live()
		if len(cpus) == 0 {
			continue
		}
		if err := w.do(func() error { return bind(cpus[i%len(cpus)]) }); err != nil {
			cpus = nil // it is logged once
			g.cfg.Logger.Warn("schedulers are not bound to CPUs", zap.Error(err))
		}
	}
}

// bind is a variable so that a test can make it fail.
var bind = thread.Bind

// live runs jobs until there are no more. The thread is in threads as long as it lives: set-up functions and closers run
// here as well, and must not wait for room in an inbox either (see Scheduler.Post).
func (w *worker) live() {
	runtime.LockOSThread()
	id := thread.ID()
	threads.add(id, 1)
	defer threads.add(id, -1)
	for job := range w.jobs {
		w.results <- w.guarded(job)
	}
}

// guarded runs job and turns a Goexit into an error. The goroutine and its thread are lost; another one takes the worker
// over, for Close.
func (w *worker) guarded(job func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(v) // of a set-up function, or with Config.Crash
		}
		go w.live()
		w.results <- errLost
	}()
	err = job()
	returned = true
	return err
}

// do runs job on the thread and returns its result.
func (w *worker) do(job func() error) error {
	w.jobs <- job
	return <-w.results
}

// cause is a shutdown request because of an error: the end of a context, or of another scheduler.
type cause struct {
	terms shutdown.Policy
	error
	run int // of Group.runs
}

func (c cause) Policy() shutdown.Policy { return c.terms }
func (c cause) Unwrap() error           { return c.error }

// late reports whether o is from a Run that has returned, as when its context ends at that moment.
func (g *Group) late(o shutdown.Order) bool {
	c, ok := o.(cause)
	return ok && c.run != g.runs
}
