package process

import (
	"slices"

	"github.com/daimon-go/daimon/future"
)

// Termination detection: the System is quiescent when all runners are passive (on the idle stack), all queues are empty,
// and no process is in transit into a queue. The last runner that becomes idle finds that out. It takes a snapshot of the
// idle stack, checks all queues, and takes another: if they are equal, no runner was active in between.

// Quiescent returns a future that is resolved when the System is quiescent: all processes sleep, no scheduler has
// anything to do for them, and no timer and no operation is under way. Then nothing happens until a task or another
// goroutine sends a message. Messages that other goroutines are just sending do not count; neither do tasks and
// connections. Processes that wait for room in a mailbox sleep. The future is resolved during Run; a System that is
// closed is quiescent. Any goroutine may call it, after the first Setup.
func (sys *System) Quiescent() *future.Future[struct{}] {
	if !sys.joined.Load() {
		panic("process: Quiescent before Setup")
	}
	f := future.New[struct{}](sys.group.Schedulers()[0])
	sys.mu.Lock()
	sys.awaiting = append(sys.awaiting, f)
	sys.awaited.Store(1)
	sys.mu.Unlock()
	for _, r := range sys.runners {
		r.wake() // the last that finds nothing to do resolves f
	}
	if sys.allClosed() {
		sys.resolve(func() bool { return true })
	}
	return f
}

// allPassive is called by the last runner that becomes idle, which has found no process in any queue. Unless processes
// sleep, and no order is in force, Run may return.
func (sys *System) allPassive(r *runner, now snapshot, nonePending bool) {
	if nonePending { // and if no process is in transit, which wakes a runner when it has arrived
		sys.resolve(func() bool { return sys.inTransit.Load() == 0 && sys.queuesEmpty() && now == sys.idle.snapshot() })
	}
	if !r.ordered && sys.Alive() > 0 {
		return
	}
	r.releaseRun()
	for _, other := range sys.runners {
		if other.keepsRun.Load() {
			other.wake() // it lets Run return when it is the last
		}
	}
}

// resolve resolves the futures of Quiescent if the System is quiescent. No future is added meanwhile: a goroutine that has
// sent a message, and then called Quiescent, must not be told of the time before.
func (sys *System) resolve(quiescent func() bool) {
	sys.mu.Lock()
	var awaiting []*future.Future[struct{}]
	if quiescent() {
		awaiting, sys.awaiting = sys.awaiting, nil
		sys.awaited.Store(0)
	}
	sys.mu.Unlock()
	for _, f := range awaiting {
		_ = f.Resolve(struct{}{})
	}
}

// queuesEmpty reports whether each queue was empty when it was checked.
func (sys *System) queuesEmpty() bool {
	return !slices.ContainsFunc(sys.runners, func(r *runner) bool { return !r.queue.empty() })
}

// inRun returns how many runners have been set up and are in Run.
func (sys *System) inRun() (n int) {
	for _, r := range sys.runners {
		if r.inRun.Load() {
			n++
		}
	}
	return n
}

// done is called when a timer or an operation is no longer pending.
func (sys *System) done() {
	if sys.pending.Add(-1) > 0 || sys.awaited.Load() == 0 {
		return
	}
	for _, r := range sys.runners {
		if r.inRun.Load() {
			r.wake() // to find out whether the System is quiescent
			return
		}
	}
}
