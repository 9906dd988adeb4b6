package act

import (
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
)

// Config configures a Group and its schedulers. The zero Config is right for a server.
type Config struct {
	// Schedulers is how many schedulers there are. 0 means one for each CPU that the process may use: as many as its
	// affinity mask has, and no more than GOMAXPROCS, which Go takes from the environment or from the CPU quota of the
	// container. NewGroup counts them once.
	Schedulers int

	// Threads is what the goroutines of Group.Run are bound to.
	Threads Threads

	// Idle is what a scheduler does when nothing is ready. nil sleeps until something happens, which is best for shared
	// machines. Package demon has others.
	Idle Strategy

	// TurnsPerPass bounds the turns of tasks between two passes; 0 means 64. With more of them a turn is cheaper, and
	// events, deadlines and demons wait longer.
	TurnsPerPass int

	// Inbox is how many posted functions may wait, rounded up to a power of two; 0 means 1024. 16 bytes each.
	Inbox int

	// Offloads bounds the goroutines of the default Executor, for the Group as a whole, not counting those of
	// Scheduler.Reserve; 0 means 64.
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

// Threads is what a scheduler of a running Group is bound to.
type Threads uint8

const (
	// Pinned schedulers have a thread of their own, bound to one CPU. If the process may use fewer CPUs than there are
	// schedulers, or the system refuses to bind them, which is logged once, they are Locked.
	Pinned Threads = iota
	// Locked schedulers have a thread of their own, which the system may move between CPUs.
	Locked
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

// resolved returns cfg with the meaning of zero values filled in.
func (cfg Config) resolved() Config {
	for _, f := range []struct {
		name  string
		value *int
		zero  int
	}{
		{"Schedulers", &cfg.Schedulers, min(len(thread.CPUs()), runtime.GOMAXPROCS(0))},
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
		cfg.Logger = hook.DefaultLogger()
	}
	if cfg.Clock == nil {
		cfg.Clock = systemClock{time.Now()}
	}
	if now := cfg.Clock.Monotonic(); now < 0 {
		panic(fmt.Sprintf("act: Config.Clock reads a negative time: %v", now))
	}
	return cfg
}
