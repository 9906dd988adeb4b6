package monitor

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// mostEvents bounds the events taken in one poll. With more, what the kernel has read of a socket has left the processor's
// caches when its answer is sent: with 256 an echo over 1000 connections took 6 % more time.
const mostEvents = 64

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
	events [mostEvents]netpoll.Event

	slots slots

	loans   budget.Loans // receives of the present turn
	batch   batch
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

type watcher interface {
	event(netpoll.Ready)
	Abort()
}

func newReadiness(s *act.Scheduler) *readiness {
	return &readiness{s: s, os: engine.Below.Get(s), slots: slots{others: map[uint32]watcher{}}, budget: budget.Of(s)}
}

// open opens the poller and makes the engine the Idler of its scheduler; further calls do nothing.
func (e *readiness) open() error {
	if e.poller == nil {
		p, err := e.os.OpenPoller()
		if err != nil {
			return fmt.Errorf("monitor: opening a poller: %w", err)
		}
		if err := e.batch.init(e, uses.Get(e.s)); err != nil {
			_ = p.Close() // the error that matters is the other one
			return fmt.Errorf("monitor: %w", err)
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
		if w := e.slots.find(ev.Tag); w != nil {
			if k, ok := w.(*socket); ok {
				e.batch.note(k, ev.Ready)
			}
			w.event(ev.Ready)
		}
	}
	e.batch.receive()
	if len(e.again) > 0 {
		e.discardAgain()
	}
}

// Interrupt ends a sleep in Idle. Any goroutine.
func (e *readiness) Interrupt() { e.poller.Interrupt() }

// register registers fd for w, until fd is closed. After an error the caller still owns fd.
func (e *readiness) register(fd int, want netpoll.Ready, w watcher) (index uint32, err error) {
	index = e.slots.take(w)
	if err := e.poller.Add(fd, e.slots.tag(index), want); err != nil {
		e.slots.free(index)
		return 0, err
	}
	e.reused(fd)
	return index, nil
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
	for k := range e.slots.sockets(0, e.slots.len()) {
		if k.state&lingering != 0 {
			k.Abort()
		}
	}
}

// Close closes every watched descriptor, and the poller. The scheduler calls it when it is closed.
func (e *readiness) Close() error {
	if e.poller == nil {
		return nil
	}
	for i := range uint32(e.slots.len()) {
		if w := e.slots.find(e.slots.tag(i)); w != nil {
			w.Abort()
		}
	}
	e.batch.close()
	return e.poller.Close()
}
