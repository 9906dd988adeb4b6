package process

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/inbox"
)

// runner runs processes on one scheduler. It is a demon, so it has a turn in each pass: the ready tasks go first, then
// the processes of its own queue, then processes of other queues, then the kernel.
type runner struct {
	sys   *System
	s     *act.Scheduler
	queue queue
	idle  word // 1: it is on the idle stack

	// The fields of its thread.
	current    *core         // whose turn it is
	next       *core         // was handed the thread: it is running, and has the next turn
	budget     int           // messages of a turn of the runner
	inTurn     bool          // it is in a turn
	readySince time.Duration // when processes were first seen to wait while another runner was idle; 0: none do
	eager      int           // so many times an idle runner is woken at once for a process that a task makes ready

	handedOff int64               // in this turn of the runner
	gone      int64               // processes that have ended in it
	free      []waiter            // what makeRoom has returned last
	waiting   bool                // it has returned Wait, and nothing has resumed it
	waker     act.Waker           //
	anywhere  act.AtomicWaker     // wakes it from any goroutine
	disarmed  inbox.Stack[*timer] // to be stopped on this thread

	ordered bool                          // a shutdown is in force
	orders  uint32                        // how many it was given
	order   atomic.Pointer[standingOrder] // the last of them, while it is in force. Written here, read anywhere

	keepsRun atomic.Bool // from returning
	dropping atomic.Bool // it was told to drop what is left, since its last turn
	isSetUp  atomic.Bool
	inRun    atomic.Bool // or about to be
	isClosed atomic.Bool

	counts                 // written here, read anywhere
	handed, stolen counter // as counts are

	turns    uint64 // of processes
	messages uint64 // received by them
	watched  bool   // somebody has asked for a list of processes: turns are timed
}

// locals find the runner of a scheduler.
var locals = act.NewLocal(func(*act.Scheduler) *local { return &local{} })

// local is the runner of a scheduler; nil: no System was set up there.
type local struct {
	*runner
	shown facts.Process // by List
}

// runnerOf returns the runner of the Sender's thread, or nil.
func runnerOf(from Sender) *runner {
	if s := from.Scheduler(); s != nil {
		return locals.Get(s).runner
	}
	return nil
}

// Bounds of a turn of a runner.
const (
	slice     = time.Millisecond // a turn that takes longer makes the next one shorter
	mostSteal = 32

	patience  = 20 * time.Microsecond // processes wait so long before an idle runner is woken for them: that costs as much
	eagerness = 16                    // see runner.eager
)

// Act is a turn of the runner: processes have turns until budget messages are received, or no queue has a process.
func (r *runner) Act(t *act.Task) act.Directive {
	r.waiting = false
	r.sys.idle.remove(r)
	r.noteOrder(t)
	stopTimers(r.disarmed.TakeAll())
	r.shareIfLate()
	r.inTurn = true
	more := r.round()
	r.inTurn = false
	if more {
		return act.Yield
	}
	r.waker = t.Waker()
	r.anywhere.Set(r.waker) // from here on wake works
	r.waiting = true
	if r.mayWait() {
		return act.Wait
	}
	return act.Yield
}

// round gives turns to processes, and reports whether there may be more. The last hand-off does not outlive the round:
// two processes that talk to each other do not keep out a third.
func (r *runner) round() (more bool) {
	defer r.publishCounts()
	defer r.recoverTurn(&more)
	for left := r.budget; left > 0; {
		c := r.take()
		if c == nil {
			return false
		}
		r.keepRun()
		if left == r.budget {
			r.s.Internals().Progress()
		}
		r.shareIfLate()
		left -= r.run(c, left)
	}
	r.requeueNext()
	r.adaptBudget()
	return true
}

// take returns a process that this thread has made running: the receiver of a hand-off, the first of the own queue, or
// a stolen one.
func (r *runner) take() *core {
	if c := r.next; c != nil {
		r.next = nil
		return c
	}
	for {
		ok, c := r.queue.tryDequeue()
		if !ok || c == nil {
			c = r.steal()
		}
		if c == nil || c.begin() {
			return c
		}
	}
}

// steal takes half of another queue: it returns the first process, and queues the others here.
func (r *runner) steal() *core {
	all := r.sys.runners
	for i := range all {
		victim := all[(int(r.s.Index())+1+i)%len(all)]
		if victim == r {
			continue
		}
		if _, stolen := victim.queue.trySteal(mostSteal); stolen.first != nil {
			return r.share(stolen)
		}
	}
	return nil
}

func (r *runner) share(stolen cores) (first *core) {
	first = stolen.first
	for c := first; c != nil; c = stolen.first {
		stolen.remove(c, queueLinks)
		add(&r.stolen, 1)
		if c != first {
			r.enqueue(c)
		}
	}
	return first
}

// run gives c its turn, in which it receives at most most messages, and returns its cost in messages.
func (r *runner) run(c *core, most int) (cost int) {
	r.current, c.on = c, r
	if c.home == 0 {
		c.checkOrder()
	}
	most = min(most, r.sys.messages)
	c.left, c.cutOff, c.overran = int32(most), false, false
	if c.word.Load()&killed != 0 {
		r.end(c, 0)
		return 1
	}
	r.turns++
	d := r.times(c)
	r.messages += uint64(most - int(c.left))
	cost = max(1, most-int(c.left))
	r.endTurn(c, d) // c may run elsewhere from here on
	r.current = nil
	return cost
}

// timed is how many turns of processes there are to one that is timed.
const timed = 64

// times is the turn of c. While somebody may ask for times, one turn in 64 is timed.
func (r *runner) times(c *core) act.Directive {
	if !r.watched || r.turns%timed != 0 {
		return c.body.turn()
	}
	begun := r.s.Clock().Monotonic()
	d := c.body.turn()
	c.took.Store(uint32(min(max(1, (r.s.Clock().Monotonic()-begun)/time.Microsecond), math.MaxUint32)))
	return d
}

// endTurn carries out the Directive of a turn.
func (r *runner) endTurn(c *core, d act.Directive) {
	switch {
	case c.over != 0:
		r.end(c, c.over)
	case d == act.Done:
		r.end(c, Normal)
	case d == act.Failed:
		r.end(c, Failed)
	case d != act.Wait && d != act.Yield:
		panic("process: an action returned " + d.String() + ": return Yield, Wait, Done or Failed")
	default:
		if c.home == 0 {
			i := r.s.Index()
			c.home = uint32(i) + 1
			r.sys.registries[i].add(c)
			c.checkOrder() // one may have been given before
		}
		r.suspend(c, d)
	}
}

// suspend makes c sleep, wait for room, or continue after the processes that are queued.
func (r *runner) suspend(c *core, d act.Directive) {
	idle := d == act.Wait && !c.cutOff
	if idle && !c.overran && !c.oversized && c.trySleep() {
		return
	}
	more, free := c.endTurn(r, idle)
	r.release(free)
	if !more {
		return
	}
	// If c is alone here no idle runner is woken: c would move from runner to runner, each time after a wake-up.
	if r.next == nil && r.queue.length() == 0 && r.queue.tryEnqueue(c) {
		return
	}
	r.enqueue(c)
}

// release tells waiters that there is room.
func (r *runner) release(free []waiter) {
	for _, w := range free {
		w.roomFree(r)
	}
}

// enqueue queues c here. In a turn of r it wakes an idle runner, which steals c: it is not known how long the present
// turn of a process, and those in front of c, will take. Elsewhere, in the turn of a task, it leaves that to
// shareIfLate, unless processes had to wait here lately: a few messages now and then are cheaper on one thread.
func (r *runner) enqueue(c *core) {
	if x := r.put(c); x != r {
		x.wake() // it may be in a long turn
	}
	if !r.sys.idle.any() {
		return
	}
	switch {
	case r.inTurn:
	case r.eager > 0:
		r.eager--
	default:
		if r.readySince == 0 {
			r.readySince = r.s.Clock().Monotonic()
		}
		return
	}
	r.sys.idle.wakeOne()
}

// put queues c here, or on the next runner whose queue is not locked.
func (r *runner) put(c *core) *runner {
	all, own := r.sys.runners, r.s.Index()
	for i := own; ; {
		if all[i].queue.tryEnqueue(c) {
			return all[i]
		}
		if i = (i + 1) % len(all); i == own {
			backOff()
		}
	}
}

// shareIfLate wakes an idle runner if the queue has not been empty for longer than patience: behind tasks, or behind
// turns of processes.
func (r *runner) shareIfLate() {
	if r.queue.empty() || !r.sys.idle.any() {
		r.readySince = 0
		return
	}
	now := r.s.Clock().Monotonic()
	if r.readySince == 0 {
		r.readySince = now
	}
	if now-r.readySince <= patience {
		return
	}
	r.readySince, r.eager = now, eagerness
	r.sys.idle.wakeOne()
}

// requeueNext queues the process that was handed the thread last.
func (r *runner) requeueNext() {
	if c := r.next; c != nil {
		r.next = nil
		r.suspend(c, act.Yield)
	}
}

// adaptBudget halves the next turn after one that took too long, since sockets wait for it, and else doubles it again.
func (r *runner) adaptBudget() {
	now := r.s.Clock().Monotonic()
	if r.readySince == 0 {
		r.readySince = now // if there are any
	}
	if now-r.s.Now() > slice {
		r.budget = max(1, r.budget/2)
	} else {
		r.budget = min(r.sys.batch, r.budget*2)
	}
}

// recoverTurn ends the process whose turn has panicked.
func (r *runner) recoverTurn(more *bool) {
	if r.s.Internals().Crash() {
		return
	}
	v := recover()
	c := r.current
	if v == nil {
		return
	}
	*more = true
	if c == nil {
		panic(v) // it is a mistake of this package
	}
	c.setFailure(r.report("a process", c, v))
	r.end(c, Panicked)
}

// mayWait checks all queues once more before r waits, and reports whether it may. A process that is queued after r is
// on the idle stack wakes it; a process that was queued before is found here.
func (r *runner) mayWait() bool {
	sys := r.sys
	if !r.disarmed.Empty() {
		r.waiting = false
		return false
	}
	now := sys.idle.push(r)
	nonePending := sys.pending.Load() == 0 // before the queues: what is pending no longer may be in one
	if !sys.queuesEmpty() {
		sys.idle.remove(r)
		r.waiting = false
		return false
	}
	if now.idle == sys.inRun() && now == sys.idle.snapshot() {
		sys.allPassive(r, now, nonePending)
	}
	return true
}

// resume wakes r, on its own thread, if it waits: a process is about to become ready.
func (r *runner) resume() {
	if !r.waiting {
		return
	}
	r.waiting = false
	r.sys.idle.remove(r)
	r.keepRun()
	r.waker.Wake()
}

// wake wakes r, from any goroutine: one interrupt, however often it is called.
func (r *runner) wake() { r.anywhere.Wake() }

// keepRun keeps Run from returning, until releaseRun.
func (r *runner) keepRun() {
	if !r.keepsRun.Load() {
		r.keepsRun.Store(true)
		r.s.Internals().KeepRunning(1)
	}
}

func (r *runner) releaseRun() {
	if r.keepsRun.Load() {
		r.keepsRun.Store(false)
		r.s.Internals().KeepRunning(-1)
	}
}

// String is the name of the demon in a Cut.
func (r *runner) String() string { return "process.System" }

// publishCounts publishes the counts that change too often to be written atomically each time.
func (r *runner) publishCounts() {
	if r.handedOff > 0 {
		add(&r.handed, r.handedOff)
	}
	if r.gone > 0 {
		add(&r.ended, r.gone)
	}
	r.handedOff, r.gone = 0, 0
}

// add adds to a counter that only one thread writes, and returns the sum.
func add(c *counter, n int64) int64 {
	n += c.Load()
	c.Store(n)
	return n
}
