// Package inspect shows what the schedulers of a program are doing, and what holds them up.
package inspect

import (
	"context"
	"runtime/pprof"
	"sync/atomic"

	"github.com/daimon-go/daimon/internal/thread"
)

// state is what a scheduler does, as far as the watchdog has to know.
type state uint64

const (
	away   state = iota // not in Run, or between two states
	turn                // in the turn of a task or demon
	pass                // in a pass: posted functions, timers, a look at the operating system
	asleep              // in its Idler, for as long as there is nothing to do
)

// watched is what a scheduler shows the watchdog. Its thread calls the methods, without a lock and without a clock; the
// watchdog calls sight. A turn costs one atomic store, and three more if it is of another task than the one before.
//
// A probe calls turn in Trace.TurnStart, pass in Trace.Pass, and asleep in Trace.Idle if the thread may sleep. It calls
// away when Run or Step returns, for which hook.Tie is there: a watched is a hook.Tied that may be registered whenever
// isAway says so.
type watched struct {
	name string        // the value of the goroutine's label; unlike those of all other schedulers in the process
	tid  atomic.Uint64 // of the thread, 0 before bind

	seq  atomic.Uint64 // number<<2 | state; it changes with each turn, pass and sleep
	kind atomic.Pointer[string]
	who  atomic.Uint64 // id<<32 | descriptor

	// What the thread itself has stored.
	number   uint64
	lastKind *string
	lastWho  uint64
}

// label is the key of the label that the goroutine of a scheduler carries in profiles.
const label = "scheduler"

// bind says that the calling goroutine and its thread are those of the scheduler. The goroutine gets a label, by which its
// stack is found. Coroutines and goroutines that it starts from then on inherit the label.
func (w *watched) bind() {
	w.tid.Store(thread.ID())
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(label, w.name)))
}

// turn says that a turn begins: of a task with this id, whose action is of this kind and serves the descriptor fd, -1 if
// none. The string is never changed; the same kind should have the same pointer.
func (w *watched) turn(kind *string, id uint32, fd int32) {
	w.number++
	if who := uint64(id)<<32 | uint64(uint32(fd)); kind != w.lastKind || who != w.lastWho {
		w.seq.Store(w.number<<2 | uint64(away)) // nothing that is read from here on counts
		w.kind.Store(kind)
		w.who.Store(who)
		w.lastKind, w.lastWho = kind, who
	}
	w.seq.Store(w.number<<2 | uint64(turn))
}

func (w *watched) pass()   { w.enter(pass) }
func (w *watched) asleep() { w.enter(asleep) }
func (w *watched) away()   { w.enter(away) }

func (w *watched) enter(s state) {
	w.number++
	w.seq.Store(w.number<<2 | uint64(s))
}

// isAway reports whether Run or Step has just begun. It is for the scheduler's thread.
func (w *watched) isAway() bool { return state(w.seq.Load()&3) == away }

// Untie is for hook.Tie: Run or Step returns.
func (w *watched) Untie() bool {
	w.away()
	return true
}

// sighting is what the watchdog has seen of a scheduler at one moment.
type sighting struct {
	seq  uint64
	kind *string // nil unless in a turn, as what follows
	id   uint32
	fd   int32 // -1 if none
}

func (x sighting) state() state { return state(x.seq & 3) }

// sight returns what the scheduler does. If it goes on meanwhile, the state is away. Any goroutine.
func (w *watched) sight() sighting {
	x := sighting{seq: w.seq.Load(), fd: -1}
	if x.state() != turn {
		return x
	}
	kind, who := w.kind.Load(), w.who.Load()
	if now := w.seq.Load(); now != x.seq {
		return sighting{seq: now &^ 3, fd: -1}
	}
	x.kind, x.id, x.fd = kind, uint32(who>>32), int32(uint32(who))
	return x
}
