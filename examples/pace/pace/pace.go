// Package pace shows how to write a monitor: this one bounds how often the tasks of a scheduler do something, all of them
// together. A [Slot] is its listener action, by which a task waits until it may go on:
//
//	if d := x.slot.Act(t); d != act.Done {
//		return d
//	}
//
// It has what every monitor needs: a Local, so that tasks find it; an attached demon, which does not keep Run from
// returning; the Wakers of the waiting tasks; and a timer.
package pace

import (
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// monitors holds the monitor of each scheduler. Slots find it there without a lock.
var monitors = act.NewLocal(func(*act.Scheduler) *monitor {
	panic("pace: no Setup on this scheduler")
})

// Slowest and Fastest bound a rate, in times a second: beyond them the time between two does not fit into a Duration.
const (
	Slowest = 1e-9
	Fastest = 1e9
)

// Setup returns a set-up function that lets the tasks of each scheduler go on rate times a second.
func Setup(rate float64) func(*act.Scheduler) error {
	if !(rate >= Slowest && rate <= Fastest) { // nor NaN
		panic(fmt.Sprintf("pace: a rate of %v is not from %v to %v", rate, Slowest, Fastest))
	}
	return func(s *act.Scheduler) error {
		m := &monitor{every: time.Duration(float64(time.Second) / rate)}
		monitors.Put(s, m)
		s.Attach(m)
		return nil
	}
}

// monitor is a demon. When it is time it wakes the first task that waits.
type monitor struct {
	every   time.Duration
	next    time.Duration // when the next task may go on
	waiting []*Slot       // in order of arrival
	timer   act.Timer
	self    act.Waker
}

// Act wakes the tasks that may go on now. Unused time is not saved up.
func (m *monitor) Act(t *act.Task) act.Directive {
	for now := t.Scheduler().Now(); len(m.waiting) > 0 && m.next <= now; {
		first := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.next = now + m.every
		first.granted = true
		first.waker.Wake()
	}
	if len(m.waiting) > 0 {
		t.WakeAt(&m.timer, m.next)
	}
	m.self = t.Waker()
	return act.Wait
}

// Stop does nothing: waiting tasks still need the monitor, and it keeps nothing from ending.
func (m *monitor) Stop(*act.Task, shutdown.Order) {}

// Slot is an action that waits until its task may go on, first come, first served. It is used once. An order does not end
// the wait.
type Slot struct {
	monitor *monitor // nil before the first turn
	waker   act.Waker
	granted bool
}

// Act is Done when the task may go on.
func (x *Slot) Act(t *act.Task) act.Directive {
	if x.granted {
		return act.Done
	}
	if x.monitor == nil {
		x.monitor = monitors.Get(t.Scheduler())
		x.monitor.waiting = append(x.monitor.waiting, x)
		x.monitor.self.Wake()
	}
	x.waker = t.Waker()
	return act.Wait
}

// Close gives up the place in the queue.
func (x *Slot) Close() error {
	if x.monitor != nil {
		x.monitor.waiting = slices.DeleteFunc(x.monitor.waiting, func(y *Slot) bool { return x == y })
	}
	return nil
}
