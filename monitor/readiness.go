package monitor

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// batch bounds the events taken in one poll.
const batch = 256

// readiness is the default engine.Engine, over epoll or kqueue, which report when a descriptor is ready. It is the Idler
// of its scheduler: the thread sleeps in the kernel's poller and nowhere else.
//
// A descriptor is registered once. From then on its readiness is a bit, set by events and cleared when a call finds
// that nothing is left. Bytes that the socket did not take are sent later, and a connection is closed in stages,
// without a turn of the task.
type readiness struct {
	s      *act.Scheduler
	os     engine.OS
	poller engine.Poller
	counts engine.Counts
	events [batch]netpoll.Event

	slots []slot
	spare []uint32 // indices of slots that are free, the last freed first

	loans   budget.Loans // receives of the present turn
	buffers [][]byte
	idle    []*outbound          // not in use
	packets netpoll.PacketBuffer // for all of their sockets
	source  *source              // the latest: a thousand dialled connections share one
	budget  *budget.Budget

	again    []*socket   // have more to discard, which no event will report
	before   []*socket   // the memory of an earlier again
	soon     act.Timer   // armed if there are any
	starving []*acceptor // wait for a descriptor to become free

	foreign map[int]*descriptor // descriptors that callers own, by their numbers
}

// slot is where an event finds the watcher of its descriptor. The generation is part of the event's tag: an event of a
// descriptor that was closed meanwhile is ignored, even if the number or the slot is in use again.
type slot struct {
	generation uint32
	watcher    watcher
}

type watcher interface {
	event(netpoll.Ready)
	Abort()
}

func newReadiness(s *act.Scheduler) *readiness {
	return &readiness{s: s, os: engine.Below.Get(s), budget: budget.Of(s)}
}

// open opens the poller and makes the engine the Idler of its scheduler; further calls do nothing.
func (e *readiness) open() error {
	if e.poller == nil {
		p, err := e.os.OpenPoller()
		if err != nil {
			return fmt.Errorf("monitor: opening a poller: %w", err)
		}
		e.poller = p
		e.s.Internals().SetIdler(e)
	}
	return nil
}

// Idle takes the events that the OS reports, and sleeps there for at most atMost.
func (e *readiness) Idle(atMost time.Duration) {
	if len(e.again) > 0 {
		atMost = 0
	}
	n, err := e.poller.Wait(e.events[:], atMost)
	if err != nil {
		panic(fmt.Errorf("monitor: polling: %w", err)) // Run ends with it: the scheduler would get no events
	}
	for _, ev := range e.events[:n] {
		index, generation := uint32(ev.Tag), uint32(ev.Tag>>32)
		if sl := &e.slots[index]; sl.generation == generation && sl.watcher != nil {
			sl.watcher.event(ev.Ready)
		}
	}
	if len(e.again) > 0 {
		e.discardAgain()
	}
}

// Interrupt ends a sleep in Idle. Any goroutine.
func (e *readiness) Interrupt() { e.poller.Interrupt() }

// register registers fd for w, until fd is closed. After an error the caller still owns fd.
func (e *readiness) register(fd int, want netpoll.Ready, w watcher) (index uint32, err error) {
	if n := len(e.spare); n > 0 {
		index, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		index = uint32(len(e.slots))
		e.slots = append(e.slots, slot{})
	}
	sl := &e.slots[index]
	sl.watcher = w
	if err := e.poller.Add(fd, uint64(sl.generation)<<32|uint64(index), want); err != nil {
		e.unwatch(index)
		return 0, err
	}
	e.reused(fd)
	return index, nil
}

// unwatch frees the slot, so that further events find nobody. What unregisters the descriptor is closing it, or Remove.
func (e *readiness) unwatch(index uint32) {
	e.slots[index].generation++
	e.slots[index].watcher = nil
	e.spare = append(e.spare, index)
}

// descriptorFreed wakes the acceptors that wait for one.
func (e *readiness) descriptorFreed() {
	for _, a := range e.starving {
		a.starving = false
		a.waker.Wake()
	}
	e.starving = e.starving[:0]
}

// Drop aborts the sockets that linger: see engine.Engine.
func (e *readiness) Drop() {
	for i := range e.slots {
		if k, ok := e.slots[i].watcher.(*socket); ok && k.state&lingering != 0 {
			k.Abort()
		}
	}
}

// Close closes every watched descriptor, and the poller. The scheduler calls it when it is closed.
func (e *readiness) Close() error {
	if e.poller == nil {
		return nil
	}
	for i := range e.slots {
		if w := e.slots[i].watcher; w != nil {
			w.Abort()
		}
	}
	return e.poller.Close()
}
