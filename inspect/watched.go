package inspect

import (
	"context"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/internal/thread"
)

// state is what a scheduler does, as far as the watchdog has to know.
type state uint64

const (
	away   state = iota // not in Run, or between two states
	turn                // in the turn of a task or demon
	pass                // in a pass: posted functions, timers, a poll of the kernel
	asleep              // in its Idler, for as long as there is nothing to do
)

// watched is what a scheduler shows other goroutines: what it is doing, and its last events. Its thread calls the
// methods, without a lock and without a clock; other goroutines call sight and lastEvents. An event is one word in a
// ring and costs one atomic store; that of a turn, a pass or a sleep costs another one.
//
//	seq ─▶ at                 next
//	 … │ turn │ woken │ woken │      between the two are what has happened since the begin of the turn, the pass or the sleep:
//	                                 at most within events, and the number of all others
//
// A probe calls turn in Trace.TurnStart, pass in Trace.Pass, and asleep in Trace.Idle if the thread may sleep. It calls
// away when Run or Step returns, for which a watched is tied (see act), which may be registered whenever
// isAway says so.
type watched struct {
	name   string          // the value of the goroutine's label, unique in the process
	labels context.Context // with that label; nil before bind
	tid    atomic.Uint64   // of the thread, 0 before bind

	seq   atomic.Uint64 // at<<2 | state; it changes with each turn, pass and sleep
	ring  [ringSize]atomic.Uint64
	names atomic.Pointer[[]string] // of kinds, by their numbers

	// Stored by the thread itself.
	at      uint64 // the number of the event of the present turn, pass or sleep
	next    uint64 // the number of the next event
	present event  // that of the present turn
	others  uint64 // events that had no place in the present turn, pass or sleep
}

// label is the key of the label that the goroutine of a scheduler carries in profiles.
const label = "scheduler"

// bind makes the calling goroutine and its thread the scheduler's. The goroutine gets a label, by which its stack is
// found. Coroutines and goroutines that it starts from then on inherit the label.
func (w *watched) bind() {
	w.tid.Store(thread.ID())
	w.labels = pprof.WithLabels(context.Background(), pprof.Labels(label, w.name))
	pprof.SetGoroutineLabels(w.labels)
}

// kindNumber makes a number for a kind, for turn and for events. The first call is for the kinds that have none of their own.
func (w *watched) kindNumber(name string) uint32 {
	var names []string
	if before := w.names.Load(); before != nil {
		names = *before
	} else {
		names = []string{"another kind"}
	}
	if len(names) > maxKind {
		return 0
	}
	names = append(names, name) // readers have a shorter one, and see nothing of it
	w.names.Store(&names)
	return uint32(len(names) - 1)
}

// kindName returns the name of a kind. Any goroutine.
func (w *watched) kindName(number uint32) string {
	if names := w.names.Load(); names != nil {
		return (*names)[number]
	}
	return ""
}

// turn says that a turn begins: of a task with this id, whose action is of this kind and serves the descriptor fd, -1 if
// none.
func (w *watched) turn(kind, id uint32, fd int32) {
	w.present = eventOf(inTurn, kind, id) | withFD(fd)
	w.enter(turn, w.present)
}

// directive says how the present turn has ended.
func (w *watched) directive(v directive) {
	w.present |= withDirective(v)
	w.ring[w.at%ringSize].Store(uint64(w.present | lap(w.at)))
}

func (w *watched) pass(now time.Duration)   { w.enter(pass, timed(passBegan, now)) }
func (w *watched) asleep(now time.Duration) { w.enter(asleep, timed(sleepBegan, now)) }
func (w *watched) away()                    { w.enter(away, eventOf(runEnded, 0, 0)) }

func (w *watched) enter(s state, e event) {
	w.at = w.next
	w.put(e)
	w.seq.Store(w.at<<2 | uint64(s))
}

// note adds an event to the present turn, pass or sleep.
func (w *watched) note(e event) {
	switch n := w.next - w.at; {
	case n <= within:
		w.put(e)
	case n == within+1:
		w.put(others | 1<<countShift)
		w.others = 1
	default:
		w.others++
		w.ring[(w.next-1)%ringSize].Store(uint64(others | event(w.others)<<countShift | lap(w.next-1)))
	}
}

func (w *watched) put(e event) {
	w.ring[w.next%ringSize].Store(uint64(e | lap(w.next)))
	w.next++
}

// isAway reports whether Run or Step has just begun. It is for the scheduler's thread.
func (w *watched) isAway() bool { return state(w.seq.Load()&3) == away }

// isTurnOf reports whether the present turn, or the latest if nothing has followed, is that of the task with this id. It is for
// the scheduler's thread.
func (w *watched) isTurnOf(id uint32) bool {
	return state(w.seq.Load()&3) == turn && w.present.id() == id
}

// Untie implements act's tied: Run or Step returns.
func (w *watched) Untie() bool {
	w.away()
	return true
}

// sighting is what the watchdog has seen of a scheduler at one moment.
type sighting struct {
	seq  uint64
	kind string // "" unless in a turn, as what follows
	id   uint32
	fd   int32 // -1 if none
}

func (x sighting) state() state { return state(x.seq & 3) }

// sight returns the present state of the scheduler. If the scheduler goes on meanwhile, the state is away. Any
// goroutine.
func (w *watched) sight() sighting {
	x := sighting{seq: w.seq.Load(), fd: -1}
	if x.state() != turn {
		return x
	}
	e := event(w.ring[(x.seq>>2)%ringSize].Load())
	if now := w.seq.Load(); now != x.seq {
		return sighting{seq: now &^ 3, fd: -1}
	}
	x.kind, x.id, x.fd = w.kindName(e.kind()), e.id(), e.fd()
	return x
}

// lastEvents returns the kept events, the oldest first. The scheduler may go on meanwhile. Any goroutine.
func (w *watched) lastEvents() (all []event) {
	for try := 0; try < 8; try++ {
		at := int(w.seq.Load() >> 2)
		// Those before may be overwritten in the present turn, pass or sleep, or by the word that begins the next one.
		first := max(0, at+within+3-ringSize)
		all = make([]event, 0, ringSize)
		for i := first; i <= at+within+1; i++ {
			e := event(w.ring[i%ringSize].Load())
			if i > at && e&lapBit != lap(uint64(i)) {
				break // it has not happened yet
			}
			all = append(all, e)
		}
		overwritten := int(w.seq.Load()>>2) - at
		if all = all[min(overwritten, len(all)):]; len(all) >= ringSize/2 || overwritten == 0 {
			break
		}
	}
	return slices.DeleteFunc(all, func(e event) bool { return e.what() == 0 })
}
