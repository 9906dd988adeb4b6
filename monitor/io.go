package monitor

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/netpoll"
)

const (
	// batch bounds the events taken in one look.
	batch = 256
	// scratchSize is what one receive can take at most, and what all receives of a turn share.
	scratchSize = 64 << 10
	// scratchLeft is the least that a loan is offered; below it a fresh scratch is made.
	scratchLeft = 4 << 10
)

// IO is the readiness engine of one scheduler, and its Idler. A descriptor is registered once; from
// then on its readiness is a bit, set by events and cleared when a call says that there is nothing more.
type IO struct {
	s      *act.Scheduler
	os     OS
	poller Poller
	events [batch]netpoll.Event

	slots []slot
	spare []uint32 // indices of slots that are free, the last freed first

	scratch []byte // receives of the present turn
	lent    int    // how much of it is lent until the turn ends
	turn    uint64 // the turn of lent
	buffers [][]byte
	idle    []*outbound // not in use
	source  *Source     // the latest: a thousand dialled connections have one

	again     []*socket // have more to discard, which no event will tell
	before    []*socket // the memory of an earlier again
	soon      act.Timer // armed if there are any
	lingering closing
	starved   []*Port // wait for a descriptor to become free
}

// slot is where events for a descriptor find who watches it. The generation is part of the event's tag:
// one for a descriptor that was closed meanwhile, and whose number or slot is in use again, is not for
// the present watcher.
type slot struct {
	generation uint32
	watcher    watcher
}

type watcher interface {
	event(netpoll.Ready)
	Abort()
}

var engines = act.NewLocal(func(s *act.Scheduler) *IO { return &IO{s: s, os: kernel{}} })

// Inject makes the scheduler's engine work on another OS. It must come before the first use.
func Inject(s *act.Scheduler, os OS) { engines.Put(s, &IO{s: s, os: os}) }

// Engine returns the scheduler's engine, which becomes its Idler on first use. The error is that of
// opening a poller.
func Engine(s *act.Scheduler) (*IO, error) {
	e := engines.Get(s)
	if e.poller == nil {
		p, err := e.os.OpenPoller()
		if err != nil {
			return nil, fmt.Errorf("monitor: opening a poller: %w", err)
		}
		e.poller = p
		s.SetIdler(e)
	}
	return e, nil
}

// Scheduler is the one whose engine e is.
func (e *IO) Scheduler() *act.Scheduler { return e.s }

// OS is what the engine works on.
func (e *IO) OS() OS { return e.os }

// Idle looks what the OS reports, and sleeps there if it may.
func (e *IO) Idle(atMost time.Duration) {
	if len(e.again) > 0 {
		atMost = 0
	}
	n, err := e.poller.Wait(e.events[:], atMost)
	if err != nil {
		panic(fmt.Errorf("monitor: polling: %w", err)) // Run ends with it: the scheduler is blind
	}
	for i := range e.events[:n] {
		e.dispatch(&e.events[i])
	}
	if len(e.again) > 0 {
		e.discardAgain()
	}
}

// Interrupt ends a sleep in Idle. Any goroutine.
func (e *IO) Interrupt() { e.poller.Interrupt() }

func (e *IO) dispatch(ev *netpoll.Event) {
	index, generation := uint32(ev.Tag), uint32(ev.Tag>>32)
	if sl := &e.slots[index]; sl.generation == generation && sl.watcher != nil {
		sl.watcher.event(ev.Ready)
	}
}

// watch registers fd for w, once for its life. After an error fd is still the caller's.
func (e *IO) watch(fd int, k netpoll.Kind, w watcher) (index uint32, err error) {
	if n := len(e.spare); n > 0 {
		index, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		index = uint32(len(e.slots))
		e.slots = append(e.slots, slot{})
	}
	sl := &e.slots[index]
	sl.watcher = w
	if err := e.poller.Add(fd, uint64(sl.generation)<<32|uint64(index), k); err != nil {
		e.unwatch(index)
		return 0, fmt.Errorf("monitor: watching a descriptor: %w", err)
	}
	return index, nil
}

// unwatch frees the slot; the descriptor is about to be closed, which unregisters it.
func (e *IO) unwatch(index uint32) {
	e.slots[index].generation++
	e.slots[index].watcher = nil
	e.spare = append(e.spare, index)
}

// descriptorFreed wakes those who could not have one.
func (e *IO) descriptorFreed() {
	for _, p := range e.starved {
		p.starved = false
		p.waker.Wake()
	}
	e.starved = e.starved[:0]
}

// loan returns room for a receive, at least scratchLeft bytes. The turn that was lent something keeps it
// until all of its ends are over.
func (e *IO) loan() []byte {
	if now := hook.TurnCount(e.s); e.turn != now {
		e.turn, e.lent = now, 0
	}
	if len(e.scratch)-e.lent < scratchLeft {
		// The old one, if any, is lent out to the end of the turn and then the collector's.
		e.scratch, e.lent = make([]byte, scratchSize), 0
	}
	return e.scratch[e.lent:]
}

// Drop aborts what lingers.
func (e *IO) Drop() {
	for e.lingering.first != nil {
		e.lingering.first.k.Abort()
	}
}

// Close closes every descriptor that is still watched, and the poller. The scheduler calls it when it is
// closed.
func (e *IO) Close() error {
	if e.poller == nil {
		return nil
	}
	e.Drop()
	for i := range e.slots {
		if w := e.slots[i].watcher; w != nil {
			w.Abort()
		}
	}
	return e.poller.Close()
}
