// Package pace is a monitor of one's own: it bounds how often the tasks of a scheduler do something
// together. A [Slot] is its listener action, the leaf by which a task waits until it may go:
//
//	if d := x.slot.Act(t); d != act.Done {
//		return d
//	}
//
// All that a monitor needs is here: a Local to be found by, a demon that is attached (it holds no Run by
// itself), Wakers of those who wait, and a timer.
package pace

import (
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// monitors is how a Slot finds the monitor of its scheduler, without a lock.
var monitors = act.NewLocal(func(*act.Scheduler) *monitor {
	panic("pace: no Setup on this scheduler")
})

// Slowest and Fastest bound a rate, in times a second: beyond them the time between two is no Duration.
const (
	Slowest = 1e-9
	Fastest = 1e9
)

// Setup returns a set-up function that lets the tasks of each scheduler go so many times a second.
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

// monitor is a demon: it wakes the first of those who wait when it is time.
type monitor struct {
	every   time.Duration
	next    time.Duration // when the next may go
	waiting []*Slot       // in order of arrival
	timer   act.Timer
	self    act.Waker
}

// Act lets go whose time has come. Time that nobody used is not saved up.
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

// Stop does nothing: as long as somebody waits the monitor is needed, and afterwards it is in nobody's way.
func (m *monitor) Stop(*act.Task, shutdown.Order) {}

// Slot is a leaf that waits until its task may go, first come, first served. It is for once. On an order it
// waits on.
type Slot struct {
	monitor *monitor // nil: has not come yet
	waker   act.Waker
	granted bool
}

// Act is Done when the task may go.
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

// Close gives up its place in the queue.
func (x *Slot) Close() error {
	if x.monitor != nil {
		x.monitor.waiting = slices.DeleteFunc(x.monitor.waiting, func(y *Slot) bool { return x == y })
	}
	return nil
}
