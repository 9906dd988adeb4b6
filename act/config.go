package act

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/logs"
	"github.com/daimon-go/daimon/internal/resource"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Config configures a Group and its schedulers. The zero Config is right for a server.
type Config struct {
	// Schedulers is how many schedulers there are. 0 means one for each CPU that the process may use: as many as are in CPUs
	// or else in its affinity mask, and no more than GOMAXPROCS. If the environment does not set GOMAXPROCS, there are also no
	// more than the CPU quotas of its control group and of those around it allow, rounded up. NewGroup counts them once.
	Schedulers int

	// Threads is what threads the schedulers of Group.Run have.
	Threads Threads

	// CPUs are those of Bound threads, by the system's numbers: the first scheduler has the first one, and so on, and from the
	// beginning if there are more schedulers. nil means all that the process may use, those first that are used least when Run
	// begins: to which fewer threads of other programs are bound, and which have less load. With other Threads there must be none.
	CPUs []int

	// Idle is what a scheduler does when nothing is ready. nil sleeps until something happens, which is best for shared
	// machines. Package demon has others.
	Idle Strategy

	// TurnsPerPass bounds the turns of tasks between two passes; 0 means 64. With more of them a turn is cheaper, and
	// events, deadlines and demons wait longer.
	TurnsPerPass int

	// Inbox is how many posted functions may wait, rounded up to a power of two; 0 means 1024. 16 bytes each.
	Inbox int

	// Offloads bounds the goroutines of the default Executor, for the Group as a whole; 0 means 64. Goroutines of
	// bridges, of blocking handlers and of stages are not counted.
	Offloads int

	// Executor calls offloaded functions; nil means a pool of at most Offloads goroutines, which are started when there
	// is work and end when there is none.
	Executor Executor

	// Shutdown are the terms of the order given when the context of Run is cancelled. The zero Policy drains
	// for 30 s and then drops.
	Shutdown shutdown.Policy

	// Draining is told what an end waits for: once a second while a scheduler obeys an order, or one is announced, if anything
	// is left. nil is told nothing. It is called on the thread of one of the schedulers, one call at a time, and must not block.
	// Tasks are counted a few hundred at a time, so schedulers keep serving; those that come and go meanwhile may be missed.
	// Package program logs a line.
	Draining func(shutdown.Drain)

	// Logger logs errors that no caller receives. nil writes errors and warnings to standard error, of equal lines the
	// first ten in a second and then every hundredth; zap.NewNop() writes none.
	Logger *zap.Logger

	// Trace observes what happens; nil observes nothing. See [MultiTrace] for several.
	Trace *Trace

	// Clock gives the time; nil means the system's.
	Clock Clock

	// Crash lets a panic of an action end the process instead of failing its task. A panic in a function of Offload or
	// Call fails its task all the same.
	Crash bool
}

// Threads is what thread a scheduler of a running Group has.
type Threads uint8

const (
	// Locked schedulers have a thread of their own, which the system may move between CPUs.
	Locked Threads = iota
	// Bound schedulers have a thread of their own, each bound to one of Config.CPUs. It is for a machine, or for CPUs, that no
	// other program uses: a bound thread waits for its CPU also while others are idle. docs/cpus.md has figures. If the system
	// refuses to bind a thread, which is logged once, that scheduler and all further ones are Locked, and those before it stay
	// bound. Other systems than Linux refuse the first one.
	//
	// A process that is started on a bound thread is bound to its CPU as well: start it in a function of [Task.Offload] or [Call],
	// which is never on one. Starting a process blocks anyway.
	Bound
	// Stepped schedulers have no thread: the caller steps all of them on one goroutine, and does not Run the Group. As in
	// Run, a scheduler that has nothing left under an order waits until none of them has.
	Stepped
)

// Clock gives the time. Its methods are called from any goroutine.
type Clock interface {
	// Monotonic is the time since some fixed moment, the same for all schedulers of a Group. It is not negative and never
	// goes back.
	Monotonic() time.Duration
	// Wall is the time of day; it may jump.
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
		panic("act: Config.CPUs are those of Bound threads only")
	}
	if cfg.Schedulers == 0 {
		cfg.Schedulers = usual(cmp.Or(len(cfg.CPUs), len(thread.CPUs())))
	}
	for _, f := range []struct {
		name  string
		value *int
		zero  int
	}{
		{"Schedulers", &cfg.Schedulers, 0},
		{"TurnsPerPass", &cfg.TurnsPerPass, 64},
		{"Inbox", &cfg.Inbox, 1024},
		{"Offloads", &cfg.Offloads, 64},
	} {
		if *f.value < 0 {
			panic(fmt.Sprintf("act: Config.%s is negative: %d", f.name, *f.value))
		}
		if *f.value == 0 {
			*f.value = f.zero
		}
	}
	cfg.Shutdown = cfg.Shutdown.Resolved()
	if cfg.Executor == nil {
		cfg.Executor = newExecutor(cfg.Offloads)
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
