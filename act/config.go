package act

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/logs"
	"github.com/daimon-go/daimon/internal/pool"
	"github.com/daimon-go/daimon/internal/resource"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Config configures a Group and its schedulers. The zero Config is right for a server.
type Config struct {
	// Schedulers is the number of schedulers. 0 means one for each CPU that the process may use: the CPUs of the field
	// CPUs, or else of the process's affinity mask, but no more than GOMAXPROCS. If the environment does not set
	// GOMAXPROCS, the CPU quotas of the process's control group and its parents bound the number too, rounded up.
	// NewGroup counts once.
	Schedulers int

	// Threads says which threads the schedulers of Group.Run have. The zero value is Locked: one thread for each scheduler.
	Threads Threads

	// CPUs lists the CPUs of Bound threads, by the kernel's numbers: the first scheduler gets the first one, and so on,
	// starting over if there are more schedulers. nil means all CPUs that the process may use, least used first when
	// Run begins: fewest bound threads of other programs, then least load. NewGroup panics if CPUs are set with other
	// Threads.
	CPUs []int

	// Idle is what a scheduler does when nothing is ready. nil sleeps until something happens, which is best on shared
	// machines. Package demon has other strategies.
	Idle Strategy

	// TurnsPerPass bounds the turns of tasks between two passes; 0 means 64. A higher number makes a turn cheaper, and
	// lets events, deadlines and demons wait longer.
	TurnsPerPass int

	// Inbox is the number of posted functions that may wait on a scheduler, rounded up to a power of two; 0 means 1024.
	// Each takes 16 bytes. See Scheduler.Post.
	Inbox int

	// Offloads bounds the goroutines of the default Executor, for the whole Group; 0 means 64. Goroutines of bridges,
	// of blocking handlers and of stages are not counted.
	Offloads int

	// Executor calls offloaded functions; nil means a pool of at most Offloads goroutines, which are started when there
	// is work and end when there is none.
	Executor Executor

	// Shutdown is the policy of the shutdown that begins when the context of Run is cancelled. The zero Policy drains
	// for 30 s and then drops what is left.
	Shutdown shutdown.Policy

	// Draining, if not nil, is called once a second while a shutdown is announced or in force and something is left,
	// with what the shutdown waits for. It is called on the thread of one of the schedulers, one call at a time, and
	// must not block. Tasks are counted a few hundred at a time, so schedulers keep serving; tasks that come and go in
	// the meantime may be missed. Package program logs a line.
	Draining func(shutdown.Drain)

	// Logger logs errors that no caller receives. nil means errors and warnings to standard error: of equal lines the
	// first ten in a second and then every hundredth. zap.NewNop() writes nothing.
	Logger *zap.Logger

	// Trace has functions that are called when tasks begin and end, and at each turn and pass, for tests and measurements.
	// nil means none. [MultiTrace] joins several.
	Trace *Trace

	// Clock gives the time to timers, logs and [Scheduler.Now]. nil means the system clock, which is right outside of tests.
	Clock Clock

	// Crash lets a panic of an action end the process instead of failing its task. A panic in a function of Offload or
	// Call fails the task even then.
	Crash bool
}

// Threads says which thread a scheduler of a running Group has. The zero value is Locked.
type Threads uint8

const (
	// Locked schedulers have a thread of their own, which the kernel may move between CPUs. It is right for most servers.
	Locked Threads = iota
	// Bound schedulers have a thread of their own, each bound to one of Config.CPUs. It is for a machine, or for CPUs,
	// that no other program uses: a bound thread waits for its CPU even while others are idle. docs/cpus.md has
	// figures. If the kernel refuses to bind a thread, this is logged once: that scheduler and all further ones are
	// Locked, and earlier ones stay bound. Systems other than Linux refuse the first one.
	//
	// An OS process that is started on a bound thread is bound to its CPU as well. Start it in a function of
	// [Task.Offload] or [Call], which never runs on a bound thread. Starting a process blocks anyway.
	Bound
	// Stepped schedulers have no thread: the caller steps all of them on one goroutine, and does not Run the Group. As
	// in Run, a scheduler that has nothing left during shutdown waits until none of them has.
	Stepped
)

// Clock gives the time to the schedulers of a Group. Implement one for tests. Its methods are called from any goroutine.
type Clock interface {
	// Monotonic returns the time since some fixed moment, the same for all schedulers of a Group. It is not negative
	// and never goes back.
	Monotonic() time.Duration
	// Wall returns the time of day, as time.Now does. It may jump.
	Wall() time.Time
}

type systemClock struct{ start time.Time }

func (c systemClock) Monotonic() time.Duration { return time.Since(c.start) }
func (systemClock) Wall() time.Time            { return time.Now() }

// quota is a variable so that a test can have one.
var quota = resource.CPUs

// usual is how many schedulers there are for cpus CPUs.
func usual(cpus int) int {
	n := min(cpus, runtime.GOMAXPROCS(0))
	if most := quota(); most > 0 && os.Getenv("GOMAXPROCS") == "" {
		n = min(n, most)
	}
	return n
}

// resolved returns cfg with the meaning of zero values filled in.
func (cfg Config) resolved() Config {
	switch {
	case cfg.Threads > Stepped:
		panic(fmt.Sprintf("act: Config.Threads is unknown: %d", cfg.Threads))
	case len(cfg.CPUs) > 0 && cfg.Threads != Bound:
		panic("act: Config.CPUs is for Bound threads only")
	}
	if min(cfg.Schedulers, cfg.TurnsPerPass, cfg.Inbox, cfg.Offloads) < 0 {
		panic(fmt.Sprintf("act: a Config with a negative bound: %d Schedulers, %d TurnsPerPass, %d Inbox, %d Offloads",
			cfg.Schedulers, cfg.TurnsPerPass, cfg.Inbox, cfg.Offloads))
	}
	if cfg.Schedulers == 0 {
		cfg.Schedulers = usual(cmp.Or(len(cfg.CPUs), len(thread.CPUs())))
	}
	cfg.TurnsPerPass, cfg.Inbox, cfg.Offloads = cmp.Or(cfg.TurnsPerPass, 64), cmp.Or(cfg.Inbox, 1024), cmp.Or(cfg.Offloads, 64)
	cfg.Shutdown = cfg.Shutdown.Resolved()
	if cfg.Executor == nil {
		cfg.Executor = executor{pool.New(cfg.Offloads)}
	}
	if cfg.Logger == nil {
		cfg.Logger = logs.Default()
	}
	cfg.Logger = logs.Valid(cfg.Logger)
	if cfg.Clock == nil {
		cfg.Clock = systemClock{time.Now()}
	}
	if now := cfg.Clock.Monotonic(); now < 0 {
		panic(fmt.Sprintf("act: Config.Clock reads a negative time: %v", now))
	}
	return cfg
}
