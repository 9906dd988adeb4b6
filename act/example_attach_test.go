package act_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// pacer is a monitor: tasks wait for it, and it wakes one of them each millisecond, in the order in which they came.
type pacer struct {
	next    time.Duration // when the next task may go on
	waiting []*slot
	timer   act.Timer
	self    act.Waker
}

var pacers = act.NewLocal(func(s *act.Scheduler) *pacer {
	p := &pacer{}
	s.Attach(p)
	return p
})

func (p *pacer) Act(t *act.Task) act.Directive {
	if now := t.Scheduler().Now(); len(p.waiting) > 0 && p.next <= now {
		p.waiting[0].granted = true
		p.waiting[0].waker.Wake()
		p.waiting, p.next = p.waiting[1:], now+time.Millisecond
	}
	if len(p.waiting) > 0 {
		t.WakeAt(&p.timer, p.next)
	}
	p.self = t.Waker()
	return act.Wait
}

// Stop does nothing: tasks that wait still need the monitor.
func (p *pacer) Stop(*act.Task, shutdown.Order) {}

// slot is the action that waits for a pacer.
type slot struct {
	of      *pacer // nil before the first turn
	waker   act.Waker
	granted bool
}

func (x *slot) Act(t *act.Task) act.Directive {
	if x.granted {
		return act.Done
	}
	if x.of == nil {
		x.of = pacers.Get(t.Scheduler())
		x.of.waiting = append(x.of.waiting, x)
		x.of.self.Wake()
	}
	x.waker = t.Waker()
	return act.Wait
}

// Close gives up the place in the queue.
func (x *slot) Close() error {
	if x.of != nil {
		x.of.waiting = slices.DeleteFunc(x.of.waiting, func(y *slot) bool { return x == y })
	}
	return nil
}

// A monitor of your own is a demon, kept in an act.Local, that holds the Wakers of the tasks that wait for it. Since it
// is attached and not installed, Run returns when the last task has ended.
func ExampleScheduler_Attach() {
	s := act.New(act.Config{})
	defer s.Close()
	for _, name := range []string{"a", "b"} {
		s.Spawn(act.Seq(&slot{}, say(name+"1"), &slot{}, say(name+"2")))
	}
	fmt.Println(s.Run())
	// Output:
	// a1
	// b1
	// a2
	// b2
	// <nil>
}
