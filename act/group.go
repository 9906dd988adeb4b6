package act

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Group is the set of schedulers of a server, with the Clock and Executor that they share. Run puts a
// thread under each; a simulation Steps them on one goroutine instead. Its schedulers may be reached
// from any goroutine, for Post and Shutdown.
type Group struct {
	cfg        Config
	schedulers []*Scheduler
	threads    []*reactor // made by the first Run, parked between Runs

	running atomic.Bool
	closed  bool
	runs    int           // Runs begun, so that the end of one's context is no order to the next
	active  atomic.Uint64 // the low half: schedulers in Run that have something left; the high: how often one began to
	ended   atomic.Bool   // none of them has: all may return
}

// began is what one more scheduler that has something left adds to Group.active.
const began = 1<<32 | 1

// NewGroup makes the schedulers, and no threads yet. It panics on a negative bound.
func NewGroup(cfg Config) *Group {
	g := &Group{cfg: cfg.resolved()}
	for i := range g.cfg.Schedulers {
		g.schedulers = append(g.schedulers, newScheduler(g, i))
	}
	return g
}

// Schedulers returns them in order of Index. The slice is not to be changed.
func (g *Group) Schedulers() []*Scheduler { return g.schedulers }

// Shutdown gives o to all schedulers. Any goroutine; see Scheduler.Shutdown.
func (g *Group) Shutdown(o shutdown.Order) {
	for _, s := range g.schedulers {
		s.Shutdown(o)
	}
}

// Run is the short way to a server: it makes a Group, runs it, and closes it.
//
//	err := act.Run(ctx, act.Config{}, server.Setup)
//
// While it runs, GOMAXPROCS is at least one more than there are schedulers, so that the collector and
// the executor need not take a scheduler's place, unless the environment sets GOMAXPROCS.
func Run(ctx context.Context, cfg Config, setup ...func(*Scheduler) error) error {
	g := NewGroup(cfg)
	defer spareProcessor(len(g.schedulers))()
	err := g.Run(ctx, setup...)
	if cut := g.Close(); err == nil {
		err = cut
	}
	return err
}

// spareProcessor raises GOMAXPROCS to n+1 and returns how to put it back: where the runtime has chosen it,
// to be chosen by the runtime, which goes on following the CPUs and quota of the process only then.
func spareProcessor(n int) (restore func()) {
	before := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" || before > n {
		return func() {}
	}
	runtime.SetDefaultGOMAXPROCS() // there is no other way to ask what that would be
	if runtime.GOMAXPROCS(n+1) == before {
		return runtime.SetDefaultGOMAXPROCS
	}
	return func() { runtime.GOMAXPROCS(before) }
}

// Run runs the set-up functions, one scheduler after another, each on its scheduler's thread, and then
// all schedulers until none has anything left: one that is empty stays at hand for what another posts
// to it. The first error of a set-up function ends Run before any turn. Cancelling ctx gives an order
// with Config.Shutdown. Run returns nil after a complete end and a *shutdown.Cut, for all schedulers
// together, when an order left something; any other error means that the Group is not usable any more.
// A Group may be run again.
func (g *Group) Run(ctx context.Context, setup ...func(*Scheduler) error) error {
	if g.cfg.Threads == Stepped {
		return ErrStepped
	}
	if !g.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer g.running.Store(false)
	if g.closed {
		return ErrClosed
	}
	g.runs++
	g.start()
	for _, s := range g.schedulers {
		if err := g.threads[s.index].do(func() error { return setUp(s, setup) }); err != nil {
			return err
		}
	}
	order := cancelled{ctx, g.cfg.Shutdown, g.runs}
	defer context.AfterFunc(ctx, func() { g.Shutdown(order) })()
	return g.runAll()
}

func setUp(s *Scheduler, setup []func(*Scheduler) error) error {
	for _, f := range setup {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// runAll runs all schedulers at once. If one breaks down the others are told to end.
func (g *Group) runAll() error {
	g.ended.Store(false)
	g.active.Store(uint64(len(g.schedulers)))
	for _, s := range g.schedulers {
		s.counts = true
		s.gone.Store(false)
	}
	results := make(chan error, len(g.schedulers))
	for i, s := range g.schedulers {
		go func() {
			err := g.threads[i].do(func() error {
				defer g.left(s) // also of a Run that is refused
				return s.Run()
			})
			if errors.Is(err, ErrGoexit) && s.broken != nil {
				err = s.broken // which says in whose turn
			}
			results <- err
		}()
	}
	var all verdicts
	for range g.schedulers {
		if err := <-results; all.add(err) {
			g.Shutdown(broken{err, g.cfg.Shutdown})
		}
	}
	return all.err()
}

// verdicts joins what the Runs of all schedulers returned.
type verdicts struct {
	cut    *shutdown.Cut
	errors []error
}

// add reports whether err is more than a cut.
func (v *verdicts) add(err error) bool {
	var cut *shutdown.Cut
	switch {
	case err == nil:
		return false
	case !errors.As(err, &cut):
		v.errors = append(v.errors, err)
		return true
	case v.cut == nil:
		v.cut = cut
	default:
		v.cut.Add(cut)
	}
	return false
}

func (v *verdicts) err() error {
	if len(v.errors) > 0 {
		return errors.Join(v.errors...)
	}
	if v.cut != nil {
		return v.cut
	}
	return nil
}

// Close closes all schedulers, each on its thread, and ends the threads. It must not be called during
// Run. What was left is dropped and reported as a *shutdown.Cut.
func (g *Group) Close() error {
	if !g.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer g.running.Store(false)
	g.closed = true
	var all verdicts
	for i, s := range g.schedulers {
		if g.threads == nil {
			all.add(s.Close())
			continue
		}
		all.add(g.threads[i].do(s.Close))
	}
	for _, r := range g.threads {
		r.end()
	}
	g.threads = nil
	return all.err()
}

// quiet is asked by a scheduler that has nothing left whether it may go: when none of the Group has.
// The last one to become quiet finds out.
//
// Only who counts takes something out of an inbox or puts something into another's. So if nobody counts,
// and each inbox is seen to be empty, and active is still the very same, then nobody has counted
// meanwhile: all inboxes have been empty at once, and nobody can have anything left. (That nobody counts
// once more is not enough: one may have taken what was in its inbox, sent it on to one that had been
// looked at already, and become quiet again.)
func (g *Group) quiet(s *Scheduler) bool {
	if g.cfg.Threads == Stepped {
		return g.allFinished()
	}
	if !g.running.Load() {
		return true // each is stepped or run by itself
	}
	if s.passing && !s.gone.Load() {
		return false // monitors that still have their turn may do anything
	}
	if s.counts {
		s.counts = false
		g.active.Add(^uint64(0))
	}
	seen := g.active.Load()
	if uint32(seen) == 0 && g.allEmpty() && g.active.Load() == seen && g.ended.CompareAndSwap(false, true) {
		for _, other := range g.schedulers {
			if other != s { // which is awake, even if it has just said otherwise
				other.rouse()
			}
		}
	}
	return g.ended.Load()
}

// allFinished is quiet for who Steps all of them.
func (g *Group) allFinished() bool {
	for _, other := range g.schedulers {
		if !other.gone.Load() && (other.passing || !other.Finished()) {
			return false
		}
	}
	return true
}

// stepped is the end of an order for who Steps all of them: the others may be waiting for just that.
func (g *Group) stepped(s *Scheduler) {
	if g.cfg.Threads != Stepped {
		return
	}
	s.gone.Store(true)
	for _, other := range g.schedulers {
		if other != s {
			other.rouse()
		}
	}
}

func (g *Group) allEmpty() bool {
	for _, s := range g.schedulers {
		if !s.gone.Load() && !s.inboxEmpty() {
			return false
		}
	}
	return true
}

// left takes a scheduler out of the count whose Run returns. What is in its inbox waits for the next.
func (g *Group) left(s *Scheduler) {
	s.gone.Store(true)
	g.quiet(s)
}

// idle tells whether s does not count and its pass has nothing to take in. Such a pass is skipped: if
// schedulers that never sleep counted in each, hardly ever would none of them.
func (g *Group) idle(s *Scheduler) bool {
	if s.counts || !g.running.Load() || s.anyReady() || !s.inboxEmpty() {
		return false
	}
	due, ok := s.timers.Next()
	return !ok || due > int64(s.now)
}

// busy counts a scheduler again, before it looks into its inbox.
func (g *Group) busy(s *Scheduler) {
	if !s.counts && g.running.Load() {
		s.counts = true
		g.active.Add(began)
	}
}

// reactor is a goroutine locked to a thread of its own, on which a scheduler lives. The thread is never
// unlocked: its goroutine ends locked and the runtime ends the thread with it.
type reactor struct {
	jobs    chan func() error
	results chan error
}

// start makes the threads, once.
func (g *Group) start() {
	if g.threads != nil {
		return
	}
	cpus := thread.CPUs()
	pinned := g.cfg.Threads == Pinned && len(g.schedulers) <= len(cpus)
	refused := make(chan error, len(g.schedulers))
	for i := range g.schedulers {
		r := &reactor{make(chan func() error), make(chan error)}
		g.threads = append(g.threads, r)
		cpu := -1
		if pinned {
			cpu = cpus[i]
		}
		go r.live(cpu, refused)
	}
	for range g.schedulers {
		if err := <-refused; err != nil && pinned {
			pinned = false // one line is enough
			g.cfg.Logger.Warn("schedulers are not pinned to their CPUs", zap.Error(err))
		}
	}
}

// pin is a variable so that a test can be the system that refuses.
var pin = thread.Pin

// live counts the thread among those that must not wait for room in an inbox (see Scheduler.Post) as long
// as it lives: also set-up functions and closers run here, with nobody at work to make room.
func (r *reactor) live(cpu int, pinned chan<- error) {
	runtime.LockOSThread()
	id := thread.ID()
	threads.enter(id)
	defer threads.leave(id)
	var err error
	if cpu >= 0 {
		err = pin(cpu)
	}
	pinned <- err
	for job := range r.jobs {
		r.results <- r.guarded(job)
	}
}

// guarded makes an error of a Goexit, which would otherwise leave everybody waiting. The goroutine is
// lost, and its thread with it, so another takes the reactor over: for Close.
func (r *reactor) guarded(job func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(v) // a set-up function's, or Config.Crash
		}
		go r.live(-1, make(chan error, 1))
		r.results <- ErrGoexit
	}()
	err = job()
	returned = true
	return err
}

// do has job done on the thread.
func (r *reactor) do(job func() error) error {
	r.jobs <- job
	return <-r.results
}

func (r *reactor) end() { close(r.jobs) }

// cancelled is the order of a cancelled context.
type cancelled struct {
	ctx   context.Context
	terms shutdown.Policy
	run   int // of Group.runs
}

func (c cancelled) Policy() shutdown.Policy { return c.terms }
func (c cancelled) Unwrap() error           { return context.Cause(c.ctx) }
func (c cancelled) Error() string           { return fmt.Sprintf("the context has ended: %v", c.Unwrap()) }

// late tells whether o is the end of a context whose Run was over when it came.
func (g *Group) late(o shutdown.Order) bool {
	c, ok := o.(cancelled)
	return ok && c.run != g.runs
}

// broken is the order to the others when one scheduler breaks down.
type broken struct {
	cause error
	terms shutdown.Policy
}

func (b broken) Policy() shutdown.Policy { return b.terms }
func (b broken) Error() string           { return fmt.Sprintf("another scheduler broke down: %v", b.cause) }
