package stage

import (
	"cmp"
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

	"github.com/daimon-go/daimon/internal/logs"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Config configures an Engine. Store, Kinds and Processors are required; the zero value of any other field is useful.
type Config struct {
	// Store keeps the tasks. Engines that share a store share its tasks: each task is worked on by one of them at a time.
	Store store.Store

	// Kinds has the kinds of task that this engine knows, by name. It claims no others. With many kinds, a claim takes
	// some microseconds for each kind with tasks that wait, whether they are due or not, and next to nothing for the
	// other kinds.
	Kinds map[string]Kind

	// Queues are the queues that the engine works on: it claims only tasks of Kinds whose Queue is one of them. Without any it
	// works on all. It adds, suspends, resumes and cancels tasks of all Kinds, and pauses all of them.
	Queues []string

	// Processors has the processors of the chains of the kinds that the engine works on, by the ids that Chain.Then
	// names. A stage whose processor is missing has failed: it is tried again, perhaps by an engine of another release
	// that has it.
	Processors map[string]Processor

	// Upkeep has the periodic tasks, and says how long ended tasks are kept. The zero Upkeep has no tasks and keeps all.
	Upkeep Upkeep

	// Middleware is put around the processor of each stage, the first one outside, whenever a stage begins. Each returns a
	// Processor that calls next, and does something around it, such as tracing, counting or checks. A panic of next passes
	// through it. The Commit comes later: to see that, return another Commit that calls the one of next.
	Middleware []func(next Processor) Processor

	// Worker is the name under which the engine claims tasks; "" means host:process:engine. It is for human readers:
	// two engines may have the same, since tokens tell their claims apart.
	Worker string

	// Workers is how many tasks the engine works on at a time, and so how many processors run; 0 means 8. A task that
	// has ended gives its place up before the store has stored the end; so the engine holds up to twice as many tasks.
	Workers int

	// Lease is how long a worker holds a task without a heartbeat; 0 means 15 s. It should be several times as long as the
	// store may take to answer, and as the slowest Commit takes. If the store is silent for longer, living workers lose
	// their tasks, and each task loses an attempt.
	Lease time.Duration

	// Heartbeat is the interval at which all leases are renewed, in one transaction, and requests of other processes are
	// seen. 0 means 1 s, or a third of the Lease if that is less. It must be below the Lease. A heartbeat that the store
	// does not answer is given up after three intervals, but not before 1 s. If a third of the Lease is less, it is given up
	// then. The next one is sent at once.
	Heartbeat time.Duration

	// Poll is the interval at which the engine polls the store for tasks that came from elsewhere or have become due.
	// It varies at random between a half and one and a half of that; 0 means 1 s. Tasks that this engine enqueues or
	// resumes are claimed at once.
	Poll time.Duration

	// OnEnd, unless it is nil, is called after a task has ended under this engine. The store has committed then that
	// the task is finished, cancelled, or has failed for good. t.Finished, t.Status and t.Failure say which. t.Data is
	// the Data that the last stage was given; Get of the Store returns the Data that it has left. t.Changed is not set.
	//
	// OnEnd is not called on a scheduler's thread. It may block, and may call the Engine except for Stop and Wait. Until it
	// returns the task keeps its place among the Workers, and Stop waits. Calls for several tasks may run at the same
	// time. A panic is logged, and has no other effect.
	//
	// OnEnd is called at most once for each end of a task: not if the process dies after the commit, if the answer of the
	// store is lost for good, or if Cancel ends a task that no worker holds. So write anything that must not be missed in
	// the Commit of the last stage.
	OnEnd func(t store.Task)

	// Shutdown is the policy by which Run stops when its context ends. The zero Policy gives processors 30 s to return.
	// In a Group it is not used: there the shutdown of the Group has a policy.
	Shutdown shutdown.Policy

	// Logger gets failed stages, lost leases, and a store that does not answer. nil means errors and warnings to standard
	// error, as for act.Config.Logger.
	Logger *zap.Logger
}

// Kind configures the tasks of one kind: their chain, and how they are tried. Only Chain is required.
type Kind struct {
	// Chain has the stages of the tasks: see Begin. It is required.
	Chain *Chain

	// Workers is how many tasks of the kind the engine works on at a time; 0 means no bound but Config.Workers. Each engine
	// counts for itself: two engines work on twice as many.
	Workers int

	// Priority orders the kinds of this engine: due tasks of kinds with a higher priority are claimed first. It may be
	// negative. Tasks of a lower priority wait for as long as there are enough due tasks of higher ones to fill the
	// engine, unless the kinds with higher priorities have Workers, fewer than Config.Workers in all. For urgent tasks, add
	// a kind with the same Chain.
	Priority int

	// Queue is the name of the queue of the kind's tasks; "" is the default queue. Config.Queues chooses among queues.
	Queue string

	// Attempts is how often a stage is tried until it has failed for good; 0 means 5. A lost worker counts as an
	// attempt, even one that Stop did not wait for; suspensions and interruptions do not. A failure counts even if it
	// comes after Suspend, but before the worker has learnt of that.
	Attempts int

	// Backoff returns how long a task waits after its n-th attempt, from 1, has failed. nil means 1 s, doubled each time,
	// at most 5 min. Then it is claimed by the next poll of an engine, and after 0 at once.
	Backoff func(n int) time.Duration

	// Timeout bounds each call of a processor; 0 means no bound. After it the context of the processor ends with the
	// cause ErrTimeout, and the attempt has failed, whatever the processor returns.
	Timeout time.Duration
}

// Engine is a worker: it claims tasks of a [store.Store] and calls processors for them. (It is unrelated to
// the engine of connections of package monitor.) Any goroutine may call its methods. Most of them wait for the store, so an
// action on a scheduler calls them with [NewCall].
type Engine struct {
	cfg   Config
	id    int64    // in the tickets of its claims
	kinds []string // that it claims
	shows []store.Show

	bounded    bool           // some of the kinds have Workers of their own
	priorities map[string]int // of kinds; nil if all are 0

	mu          sync.Mutex
	alone       *goroutines
	host        host
	maintenance *maintenance // of the latest Group, until its scheduler is closed; or nil
	running     bool         // between the begin and the end of Run, or in a Group
	stopping    bool
	works       []*work       // in order of their claims; what is done to all is done in this order
	dropped     []*work       // of earlier runs: their leases end by themselves
	claims      []*claim      // that the store has not answered yet, in order of their numbers
	number      int64         // of the latest claim
	leaving     int           // how many of works keep no place among the Workers
	recoveries  int           // how many more heartbeats ask for claims whose answers were lost
	more        bool          // the last claim got all that it asked for: there may be more
	done        chan struct{} // closed when nothing is claimed or being claimed; nil if no caller waits for that
	jitter      *rand.Rand
	period      *period
	outage      outage
	counts      counts
}

// host takes the steps of an Engine's tasks, and has the clock: goroutines, or a scheduler. All methods but rest may be
// called from any goroutine.
type host interface {
	now() time.Duration
	// take begins with the steps of works.
	take(works []*work)
	// ring says that there may be something to claim.
	ring()
	// settled says that no work is left.
	settled()
	// heartbeatNow asks for a heartbeat at once.
	heartbeatNow()
	// rest returns when nothing of that period runs any more but steps. It must not be called on a scheduler.
	rest(*period)
}

// Errors of an Engine.
var (
	// ErrRunning is the error of Run and Setup while the engine runs already.
	ErrRunning = errors.New("stage: the engine is running already")
	// ErrUnknownKind is the error of methods that are given a kind that Config.Kinds does not have.
	ErrUnknownKind = errors.New("stage: the engine does not know this kind of task")
)

var engines atomic.Int64

// New returns an Engine, or an error that lists all mistakes in cfg. It starts nothing: see [Engine.Run],
// [Engine.Setup] and [Engine.Fire].
func New(cfg Config) (*Engine, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.resolved()
	if cfg.Worker == "" {
		host, _ := os.Hostname() // without a name there is still the rest
		cfg.Worker = fmt.Sprintf("%s:%d:%d", host, os.Getpid(), engines.Add(1))
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(cfg.Worker))
	e := &Engine{
		cfg:    cfg,
		id:     rand.Int64(),
		period: newPeriod(),
		jitter: rand.New(rand.NewPCG(seed.Sum64(), 0)),
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Kinds)) {
		k := cfg.Kinds[name]
		if len(cfg.Queues) > 0 && !slices.Contains(cfg.Queues, k.Queue) {
			continue
		}
		e.kinds = append(e.kinds, name)
		e.shows = append(e.shows, shows(name, k.Chain)...)
		e.bounded = e.bounded || k.Workers > 0
		if k.Priority != 0 {
			if e.priorities == nil {
				e.priorities = map[string]int{}
			}
			e.priorities[name] = k.Priority
		}
	}
	e.alone = newGoroutines(e)
	e.host = e.alone
	return e, nil
}

// require notes a mistake in a Config, unless ok.
type require func(ok bool, format string, args ...any)

// of returns a require for a part of the Config, which the format names.
func (r require) of(format string, args ...any) require {
	return func(ok bool, more string, others ...any) { r(ok, format+more, append(slices.Clip(args), others...)...) }
}

func (cfg Config) check() error {
	var wrong []error
	say := require(func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("stage: Config."+format, args...))
		}
	})
	say(cfg.Store != nil, "Store is missing")
	say(len(cfg.Kinds) > 0, "Kinds is empty")
	say(cfg.Processors != nil, "Processors is missing")
	for name, k := range cfg.Kinds {
		say(name != "", "Kinds has a kind without a name")
		say(storable(name), "Kinds has a kind that is not UTF-8 without NUL: %q", name)
		k.check(say.of("Kinds[%q].", name))
	}
	cfg.Upkeep.check(say.of("Upkeep."), cfg.Kinds)
	for _, queue := range cfg.Queues {
		found := false
		for _, k := range cfg.Kinds {
			found = found || k.Queue == queue
		}
		say(found, "Queues has a queue that no kind has: %q", queue)
	}
	say(!slices.ContainsFunc(cfg.Middleware, func(m func(Processor) Processor) bool { return m == nil }), "Middleware has a nil")
	say(storable(cfg.Worker), "Worker is not UTF-8 without NUL: %q", cfg.Worker)
	say(cfg.Workers >= 0, "Workers is negative: %d", cfg.Workers)
	say(cfg.Lease >= 0, "Lease is negative: %v", cfg.Lease)
	say(cfg.Lease <= 0 || cfg.Lease >= time.Millisecond, "Lease is less than stores can count: %v", cfg.Lease)
	say(cfg.Heartbeat >= 0, "Heartbeat is negative: %v", cfg.Heartbeat)
	say(cfg.Poll >= 0, "Poll is negative: %v", cfg.Poll)
	if r := cfg.resolved(); cfg.Lease >= 0 && cfg.Heartbeat >= 0 {
		say(r.Heartbeat < r.Lease, "Heartbeat (%v) must be below Lease (%v)", r.Heartbeat, r.Lease)
	}
	return errors.Join(wrong...)
}

func (k Kind) check(say require) {
	if say(k.Chain != nil, "Chain is missing"); k.Chain != nil {
		k.Chain.check(say.of("Chain "))
	}
	say(k.Workers >= 0, "Workers is negative: %d", k.Workers)
	say(k.Attempts >= 0, "Attempts is negative: %d", k.Attempts)
	say(k.Timeout >= 0, "Timeout is negative: %v", k.Timeout)
}

// longest bounds the durations of a Config with which the engine reckons, at 73 years: three of them do not overflow.
const longest time.Duration = 1 << 61

func (cfg Config) resolved() Config {
	cfg.Workers = cmp.Or(cfg.Workers, 8)
	cfg.Lease = min(longest, cmp.Or(cfg.Lease, 15*time.Second))
	cfg.Heartbeat = min(longest, cmp.Or(cfg.Heartbeat, max(1, min(time.Second, cfg.Lease/3))))
	cfg.Poll = min(longest, cmp.Or(cfg.Poll, time.Second))
	if cfg.Logger == nil {
		cfg.Logger = logs.Default()
	}
	cfg.Shutdown = cfg.Shutdown.Resolved()
	cfg.Upkeep.Periodic, cfg.Upkeep.Retention = maps.Clone(cfg.Upkeep.Periodic), maps.Clone(cfg.Upkeep.Retention)
	cfg.Kinds, cfg.Processors = maps.Clone(cfg.Kinds), maps.Clone(cfg.Processors)
	for name, k := range cfg.Kinds {
		k.Attempts = cmp.Or(k.Attempts, 5)
		if k.Backoff == nil {
			k.Backoff = doubling
		}
		cfg.Kinds[name] = k
	}
	return cfg
}

// doubling is the Backoff where none is given.
func doubling(n int) time.Duration { return min(time.Second<<min(n-1, 16), 5*time.Minute) }

// Enqueue adds a task of one of the engine's kinds at the first stage of its chain, with data for its processors. An
// engine that runs claims it at once, if it has room. The error may be ErrUnknownKind.
func (e *Engine) Enqueue(ctx context.Context, kind string, data []byte) (store.ID, error) {
	n, err := e.NewTask(kind, data)
	if err != nil {
		return 0, err
	}
	ids, err := e.EnqueueAll(ctx, n)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// NewTask returns a task of one of the engine's kinds at the first stage of its chain. It is for EnqueueAll, or for the function
// of a store that enqueues in a transaction of yours. Callers may set After, At, Key and Within. The error may be ErrUnknownKind.
func (e *Engine) NewTask(kind string, data []byte) (store.NewTask, error) {
	k, ok := e.cfg.Kinds[kind]
	if !ok {
		return store.NewTask{}, fmt.Errorf("%w: %q", ErrUnknownKind, kind)
	}
	return store.NewTask{Kind: kind, Stage: k.Chain.stages[0].name, Data: data}, nil
}

// EnqueueAll adds tasks that NewTask has made, all or none, in one call of the store. It returns their numbers, in
// order. Tasks of kinds that this engine does not know are added too, and wait for an engine that knows them.
func (e *Engine) EnqueueAll(ctx context.Context, tasks ...store.NewTask) ([]store.ID, error) {
	ids, err := e.cfg.Store.Enqueue(transition.WithEnqueuer(ctx, e.id), tasks...)
	if err == nil {
		e.where().ring()
	}
	return ids, err
}

// Suspend takes a task out of work until Resume, whichever process works on it. The task goes back to its last static stage,
// and is Suspended there. When Suspend has returned true, no stage of the task finishes any more. If its last attempt fails
// before the worker has learnt of the request, the task has failed for good instead, and only Retry lets it go on.
// Suspend returns false for a task that is suspended already or does not run. The error may be store.ErrNotFound.
func (e *Engine) Suspend(ctx context.Context, id store.ID) (bool, error) {
	return e.stop(ctx, id, e.cfg.Store.Suspend, store.ErrSuspended)
}

// Resume lets a suspended task continue from its last static stage when it is claimed next. A suspension that has not
// taken place yet is withdrawn. Resume returns false for a task in any other state. The error may be store.ErrNotFound.
func (e *Engine) Resume(ctx context.Context, id store.ID) (bool, error) {
	return e.resume(ctx, id, false)
}

// Retry does what Resume does, and also resumes a task that is Failed: its attempts begin anew. It reports whether that
// changed anything. The error may be store.ErrNotFound.
func (e *Engine) Retry(ctx context.Context, id store.ID) (bool, error) {
	return e.resume(ctx, id, true)
}

func (e *Engine) resume(ctx context.Context, id store.ID, failed bool) (bool, error) {
	ok, err := e.cfg.Store.Resume(ctx, id, failed)
	if ok {
		e.where().ring()
	}
	return ok, err
}

// Cancel ends a task for good, whichever process works on it: it goes back to its last static stage, and is Canceled
// there. When Cancel has returned true, no stage of the task finishes any more. It returns false for a task that is
// finished or cancelled already. The error may be store.ErrNotFound.
func (e *Engine) Cancel(ctx context.Context, id store.ID) (bool, error) {
	ok, err := e.stop(ctx, id, e.cfg.Store.Cancel, store.ErrCanceled)
	if ok {
		e.mayHaveEnded(id)
	}
	return ok, err
}

// PauseKind keeps the engines of all processes from claiming tasks of a kind until ResumeKind. When it has returned, no engine
// claims a task of the kind any more: no new one, none that has failed, and none whose worker has died. Workers go on with
// tasks that they hold, to the ends of their chains. Tasks can be added, suspended, resumed and cancelled as always. The pause
// is stored, and outlives all processes. PauseKind returns false if the kind is paused already. The error may be
// ErrUnknownKind.
func (e *Engine) PauseKind(ctx context.Context, kind string) (bool, error) {
	if _, ok := e.cfg.Kinds[kind]; !ok {
		return false, fmt.Errorf("%w: %q", ErrUnknownKind, kind)
	}
	return e.cfg.Store.SetPaused(ctx, kind, true)
}

// ResumeKind ends the pause of a kind, which this engine need not know. An engine that runs claims its tasks at once. ResumeKind
// returns false if the kind is not paused.
func (e *Engine) ResumeKind(ctx context.Context, kind string) (bool, error) {
	ok, err := e.cfg.Store.SetPaused(ctx, kind, false)
	if ok {
		e.where().ring()
	}
	return ok, err
}

// Store returns Config.Store, for example to get or list tasks. Any goroutine.
func (e *Engine) Store() store.Store { return e.cfg.Store }

func (e *Engine) where() host {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.host
}

// stop makes a request, and ends the context of the task if this engine works on it.
func (e *Engine) stop(ctx context.Context, id store.ID, request func(context.Context, store.ID) (bool, error), why error) (bool, error) {
	ok, err := request(ctx, id)
	if ok {
		for _, w := range e.claimed() {
			if w.lease.Task == id {
				w.stop(why)
			}
		}
	}
	return ok, err
}

func (e *Engine) claimed() []*work {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.works)
}

func (e *Engine) remove(w *work) {
	e.mu.Lock()
	if i := slices.Index(e.works, w); i >= 0 {
		e.works = slices.Delete(e.works, i, i+1)
		w.leave(false)
	}
	settled, ring := e.settle(), e.more || w.due
	e.mu.Unlock()
	w.lose(store.ErrLeaseLost) // frees what was derived from its contexts
	if settled {
		e.where().settled()
	}
	if ring {
		e.where().ring()
	}
}

// settle wakes the callers that wait until nothing is claimed, if so, and reports whether it is. Under mu.
func (e *Engine) settle() bool {
	idle := len(e.works)+len(e.claims) == 0
	if idle && e.done != nil {
		close(e.done)
		e.done = nil
	}
	return idle
}

// Wait returns when this engine works on no task, or ctx has ended. While the engine runs and finds due tasks, that may be
// never.
func (e *Engine) Wait(ctx context.Context) error {
	select {
	case <-e.idle():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idle returns a channel that is closed when nothing is claimed or being claimed.
func (e *Engine) idle() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
	}
	done := e.done
	e.settle()
	return done
}

// polling returns how long to wait until the next claim.
func (e *Engine) polling() time.Duration { return e.varied(e.cfg.Poll) }

// varied returns between a half and one and a half of d, at random.
func (e *Engine) varied(d time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return d/2 + time.Duration(e.jitter.Int64N(int64(d)))
}

// state reports whether the engine stops, and whether nothing is claimed or being claimed.
func (e *Engine) state() (stopping, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopping, len(e.works)+len(e.claims) == 0
}
