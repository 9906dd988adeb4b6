package stage

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/shutdown"
)

// Config is how an Engine is made. Store, Chains and Provider are needed; all else has a good zero.
type Config struct {
	// Store keeps the tasks. Engines that share it share the work.
	Store Store

	// Chains are the kinds of task that this engine knows, each with its way. It claims no others.
	Chains map[string]*Chain

	// Provider has the processors of the Chains.
	Provider Provider

	// Listeners hear of every stage, before and after those that a processor has by itself.
	Listeners []Listener

	// Worker is who claims tasks, for those who look at them; "" means host:process:engine. Two engines may have the
	// same: what tells their claims apart are tokens.
	Worker string

	// Workers bounds the tasks that are worked on here at a time, and so the processors that run; 0 means 8.
	Workers int

	// Lease is for how long a task stays with a worker that is not heard of; 0 means 15 s. A stage may take longer:
	// heartbeats renew it. It should be several times what the store may take to answer, and what the slowest Commit
	// takes: a store that is silent for longer costs living workers their tasks, and the tasks an attempt.
	Lease time.Duration

	// Heartbeat is how often leases are renewed, all in one transaction, and requests of other processes seen; 0
	// means 1 s, or a third of the Lease if that is less. It must be below the Lease.
	Heartbeat time.Duration

	// Poll is how often Run looks for tasks that came from elsewhere or have become due, between a half and one and
	// a half of it; 0 means 1 s. What this engine enqueues or resumes it takes up at once; what another process has
	// enqueued waits for a poll.
	Poll time.Duration

	// Attempts is how often a stage is begun until it has failed for good; 0 means 5. Workers that were lost with a
	// stage count as well, also one that a Stop has cut; suspensions and interruptions do not.
	Attempts int

	// Backoff is how long a task rests after its n-th attempt, from 1, has failed; nil means 1 s, doubled each time,
	// at most 5 min.
	Backoff func(n int) time.Duration

	// Shutdown are the terms when the context of Run ends. The zero Policy gives processors 30 s to return. In a
	// Group, whose orders have terms, it is not used.
	Shutdown shutdown.Policy

	// Logger takes what nobody else is told: stages that fail, leases lost, a store that does not answer. nil means
	// errors and warnings to standard error, as act.Config.Logger.
	Logger *zap.Logger
}

// Engine works on the tasks of a Store. Its methods may be called from any goroutine, but most wait for the store, so
// not in a turn of a scheduler: there see Ask.
type Engine struct {
	cfg   Config
	kinds []string

	mu       sync.Mutex
	alone    *goroutines
	host     host
	running  bool // between the begin and the end of Run, or in a Group
	stopping bool
	works    []*work       // in order of their claims; what is done to all is done in this order
	claiming int           // room that is being asked for
	hungry   bool          // the last claim got all that it asked for: there may be more
	quiet    chan struct{} // closed when nothing is claimed or being claimed; nil: nobody waits for that
	jitter   *rand.Rand
	life     *life
}

// host is where the steps of an Engine's tasks are taken, and what keeps its time: goroutines, or a scheduler.
type host interface {
	now() time.Duration
	// take takes works into care. Any goroutine.
	take(works []*work)
	// ring says that there may be something to claim, or nothing left. Any goroutine.
	ring()
	// rest returns when nothing runs any more but steps. Any goroutine but a scheduler's.
	rest(*life)
}

// Errors of an Engine.
var (
	ErrStopped     = errors.New("stage: the engine is stopped")
	ErrRunning     = errors.New("stage: the engine is running already")
	ErrUnknownKind = errors.New("stage: no chain for this kind of task")
)

var engines atomic.Int64

// New returns an Engine, or all that is wrong with cfg. It runs nothing: see Run, Setup and Fire.
func New(cfg Config) (*Engine, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.resolved()
	cfg.Chains = maps.Clone(cfg.Chains)
	if cfg.Worker == "" {
		host, _ := os.Hostname() // without a name there is still the rest
		cfg.Worker = fmt.Sprintf("%s:%d:%d", host, os.Getpid(), engines.Add(1))
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(cfg.Worker))
	e := &Engine{
		cfg:    cfg,
		kinds:  slices.Sorted(maps.Keys(cfg.Chains)),
		life:   newLife(),
		jitter: rand.New(rand.NewPCG(seed.Sum64(), 0)),
	}
	e.alone = newGoroutines(e)
	e.host = e.alone
	return e, nil
}

func (cfg Config) check() error {
	var wrong []error
	say := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("stage: Config."+format, args...))
		}
	}
	say(cfg.Store != nil, "Store is missing")
	say(len(cfg.Chains) > 0, "Chains is empty")
	say(cfg.Provider != nil, "Provider is missing")
	for kind, chain := range cfg.Chains {
		say(kind != "", "Chains has a kind without a name")
		if say(chain != nil, "Chains has no chain for %q", kind); chain != nil {
			for _, err := range chain.check() {
				say(false, "Chains: the chain for %q %w", kind, err)
			}
		}
	}
	say(!slices.Contains(cfg.Listeners, nil), "Listeners has a nil")
	say(cfg.Workers >= 0, "Workers is negative: %d", cfg.Workers)
	say(cfg.Attempts >= 0, "Attempts is negative: %d", cfg.Attempts)
	say(cfg.Lease >= 0, "Lease is negative: %v", cfg.Lease)
	say(cfg.Lease <= 0 || cfg.Lease >= time.Millisecond, "Lease is less than stores can count: %v", cfg.Lease)
	say(cfg.Heartbeat >= 0, "Heartbeat is negative: %v", cfg.Heartbeat)
	say(cfg.Poll >= 0, "Poll is negative: %v", cfg.Poll)
	if r := cfg.resolved(); cfg.Lease >= 0 && cfg.Heartbeat >= 0 {
		say(r.Heartbeat < r.Lease, "Heartbeat (%v) must be below Lease (%v)", r.Heartbeat, r.Lease)
	}
	return errors.Join(wrong...)
}

func (cfg Config) resolved() Config {
	zero(&cfg.Workers, 8)
	zero(&cfg.Attempts, 5)
	zero(&cfg.Lease, 15*time.Second)
	zero(&cfg.Heartbeat, max(1, min(time.Second, cfg.Lease/3)))
	zero(&cfg.Poll, time.Second)
	if cfg.Backoff == nil {
		cfg.Backoff = doubling
	}
	if cfg.Logger == nil {
		cfg.Logger = hook.DefaultLogger()
	}
	cfg.Shutdown = cfg.Shutdown.Resolved()
	return cfg
}

// doubling is the Backoff where none is given.
func doubling(n int) time.Duration { return min(time.Second<<min(n-1, 16), 5*time.Minute) }

// zero gives what is not set its meaning.
func zero[T comparable](field *T, meaning T) {
	if *field == *new(T) {
		*field = meaning
	}
}

// Enqueue adds a task of one of the engine's kinds at the first stage of its chain, with what its processors are to
// know. If the engine runs it begins at once, when there is room.
func (e *Engine) Enqueue(ctx context.Context, kind string, data []byte) (ID, error) {
	chain := e.cfg.Chains[kind]
	if chain == nil {
		return 0, fmt.Errorf("%w: %q", ErrUnknownKind, kind)
	}
	id, err := e.cfg.Store.Enqueue(ctx, kind, chain.first().Name, data)
	if err == nil {
		e.where().ring()
	}
	return id, err
}

// Suspend takes a task out of work, wherever it is being worked on, until Resume: it goes back to its last static
// stage, and is Suspended there. When Suspend has returned true no stage of it finishes any more. It reports false
// if that is so already, and for a task that is not going to run. The error may be ErrNotFound.
func (e *Engine) Suspend(ctx context.Context, id ID) (bool, error) {
	ok, err := e.cfg.Store.Suspend(ctx, id)
	if ok {
		e.stop(id, ErrSuspended)
	}
	return ok, err
}

// Resume lets a suspended task go on, from its last static stage, when it is claimed next. A suspension that has not
// taken place yet is withdrawn. It reports false for a task in any other state; the error may be ErrNotFound.
func (e *Engine) Resume(ctx context.Context, id ID) (bool, error) { return e.resume(ctx, id, false) }

// ResumeFailed is Resume for tasks in Error as well. Their attempts begin anew.
func (e *Engine) ResumeFailed(ctx context.Context, id ID) (bool, error) {
	return e.resume(ctx, id, true)
}

func (e *Engine) resume(ctx context.Context, id ID, failed bool) (bool, error) {
	ok, err := e.cfg.Store.Resume(ctx, id, failed)
	if ok {
		e.where().ring()
	}
	return ok, err
}

// Cancel ends a task for good, wherever it is being worked on: it goes back to its last static stage, is Cancelled
// there, and never tried again. When Cancel has returned true no stage of it finishes any more. It reports false for
// one that is finished or cancelled already; the error may be ErrNotFound.
func (e *Engine) Cancel(ctx context.Context, id ID) (bool, error) {
	ok, err := e.cfg.Store.Cancel(ctx, id)
	if ok {
		e.stop(id, ErrCancelled)
	}
	return ok, err
}

// Get returns a task.
func (e *Engine) Get(ctx context.Context, id ID) (Task, error) { return e.cfg.Store.Get(ctx, id) }

// List returns tasks in order of their numbers, also of kinds that the engine does not know.
func (e *Engine) List(ctx context.Context, f Filter) ([]Task, error) { return e.cfg.Store.List(ctx, f) }

// where is the present host.
func (e *Engine) where() host {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.host
}

// stop ends the context of a task that is worked on here.
func (e *Engine) stop(id ID, why error) {
	for _, w := range e.claimed() {
		if w.lease.Task == id {
			w.stop(why)
		}
	}
}

// claimed returns the works there are.
func (e *Engine) claimed() []*work {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.works)
}

// Fire claims what can run now: tasks that are new, resumed, due again after a failure, or left by a worker whose
// lease has ended; as many as there is room for under Config.Workers. It returns how many, when they are claimed and
// not when they are done: see Wait. Each task is given to one, however many engines, goroutines and processes fire.
//
// Run and a Group fire by themselves. After Stop it returns ErrStopped. If ctx ends while the store is asked, some
// tasks may be claimed for nobody, until the lease ends.
func (e *Engine) Fire(ctx context.Context) (int, error) {
	works, err := e.claim(ctx)
	e.where().take(works)
	return len(works), err
}

// claim asks the store for as many tasks as there is room for.
func (e *Engine) claim(ctx context.Context) (works []*work, err error) {
	room, err := e.reserve()
	if room == 0 || err != nil {
		return nil, err
	}
	now := e.where().now
	asked := now()
	var tasks []Task
	defer func() { works = e.admit(tasks, room, now, asked) }() // also if the store panics
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease/2)      // what is claimed later is as good as lost
	defer cancel()
	tasks, err = e.cfg.Store.Claim(ctx, Claim{
		Worker: e.cfg.Worker, Kinds: e.kinds, Limit: room, Length: e.cfg.Lease, Enter: e.enter,
	})
	return nil, err
}

// admit makes works of what was claimed instead of the room. Their leases count from when they were asked for.
func (e *Engine) admit(tasks []Task, room int, now func() time.Duration, asked time.Duration) []*work {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claiming -= room
	e.hungry = len(tasks) == room
	works := make([]*work, len(tasks))
	for i, t := range tasks {
		works[i] = newWork(e, t, now, asked+e.cfg.Lease)
		if e.stopping {
			works[i].stop(ErrInterrupted)
		}
	}
	e.works = append(e.works, works...)
	e.settle()
	return works
}

// reserve takes all the room there is.
func (e *Engine) reserve() (room int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return 0, ErrStopped
	}
	room = max(0, e.cfg.Workers-len(e.works)-e.claiming)
	e.claiming += room
	return room, nil
}

// enter says where a task is shown that is being claimed: at its next dynamic stage, if there is one and nobody
// objects. One that is found at a dynamic stage, because its worker is lost, goes back first.
func (e *Engine) enter(t *Task) (string, int) {
	chain := e.cfg.Chains[t.Kind]
	s, err := chain.find(t.Stage)
	if err != nil {
		return t.Stage, t.Attempt
	}
	if s.dynamic() {
		before, _ := chain.previous(t.Stage)
		if t.Status == InProcessing {
			return before.Name, t.Attempt + 1
		}
		return before.Name, t.Attempt
	}
	if next, err := chain.next(t.Stage); err == nil && t.Wanted == Nothing {
		return next.Name, t.Attempt
	}
	return t.Stage, t.Attempt
}

// sendBack gives works back that no host takes, on this goroutine. Where the store does not answer, their leases end.
func (e *Engine) sendBack(works []*work) {
	for _, w := range works {
		w.stop(ErrInterrupted)
		for after := time.Duration(0); after == 0 && !w.over(); {
			after = w.step()
		}
		e.remove(w)
	}
}

// remove forgets a work that is over.
func (e *Engine) remove(w *work) {
	e.mu.Lock()
	e.works = slices.DeleteFunc(e.works, func(other *work) bool { return other == w })
	idle := e.settle()
	ring := idle || e.hungry
	e.mu.Unlock()
	w.lose(ErrLeaseLost) // what hangs on its contexts goes with it
	if ring {
		e.where().ring()
	}
}

// settle tells those who wait for it that nothing is claimed. Under mu.
func (e *Engine) settle() bool {
	idle := len(e.works)+e.claiming == 0
	if idle && e.quiet != nil {
		close(e.quiet)
		e.quiet = nil
	}
	return idle
}

// Wait returns when no task is being worked on here, or ctx has ended. While the engine runs, and there is something
// to do, that may be never.
func (e *Engine) Wait(ctx context.Context) error {
	select {
	case <-e.idle():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idle is closed when nothing is claimed or being claimed.
func (e *Engine) idle() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quiet == nil {
		e.quiet = make(chan struct{})
	}
	quiet := e.quiet
	e.settle()
	return quiet
}

// polling is how long to wait before the next look into the store.
func (e *Engine) polling() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cfg.Poll/2 + time.Duration(e.jitter.Int64N(int64(e.cfg.Poll)))
}

// state tells whether the engine is to end, and whether nothing is claimed or being claimed.
func (e *Engine) state() (stopping, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopping, len(e.works)+e.claiming == 0
}
