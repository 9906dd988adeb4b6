package process

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/panics"
)

// reactor is what a System has on each scheduler: a demon, and so a turn in each pass, in which it runs processes.
// Tasks that are ready go first, then come the processes of its own queue, then those of others, then the kernel.
type reactor struct {
	sys   *System
	s     *act.Scheduler
	queue queue
	idle  word // on the stack
	busy  word // in a turn

	// The rest is its thread's.
	current *core         // whose turn it is
	next    *core         // it has been handed on to here: it is running, and has the next turn
	budget  int           // messages of a turn of the reactor
	paused  time.Duration // when the last turn ended that left somebody in the queue

	passed   int64    // handed on in this turn of the reactor
	gone     int64    // ended
	free     []waiter // what makeRoom has returned last
	waiting  bool     // for a wake-up: nothing here will look by itself
	waker    act.Waker
	bell     act.AtomicWaker
	disarmed inbox.Stack[*timer] // to be stopped here

	ordered bool                     // an order is in force
	orders  uint32                   // how many were obeyed here
	order   atomic.Pointer[standing] // the last of them, while it is in force. Written here, read anywhere

	holding  atomic.Bool // Run
	dropping atomic.Bool // since its last turn
	present  atomic.Bool // it has been set up
	inRun    atomic.Bool // or about to be
	shut     atomic.Bool

	made, ended, dropped, handed, stolen counter // written here, read anywhere
}

// places has the one of each scheduler.
var places = act.NewLocal(func(*act.Scheduler) *place { return &place{} })

// place is where the reactor of a scheduler is found, if a System has been set up there.
type place struct{ *reactor }

// Most that a turn of a reactor may take.
const (
	slice     = time.Millisecond // in time; beyond that the next is shorter
	mostSteal = 32
)

// Act is a turn: processes have theirs until so many messages are received, or none is ready anywhere.
func (r *reactor) Act(t *act.Task) act.Directive {
	r.waiting = false
	r.sys.idle.remove(r)
	r.heed(t)
	r.stopAlarms()
	r.call()
	r.busy.Store(1) // before it looks at its queue
	more := r.round()
	r.busy.Store(0)
	if more {
		return act.Yield
	}
	r.waker = t.Waker()
	r.bell.Set(r.waker) // who makes something ready from here on wakes r
	r.waiting = true
	if r.lastLook() {
		return act.Wait
	}
	return act.Yield
}

// round gives turns to processes, and reports whether there may be more. What was handed on last goes to the end of
// the queue: two that talk to each other do not keep out a third.
func (r *reactor) round() (more bool) {
	defer r.count()
	defer r.rescue(&more)
	for left := r.budget; left > 0; {
		c := r.take()
		if c == nil {
			return false
		}
		r.hold()
		left -= r.run(c)
	}
	r.yield()
	r.adapt()
	return true
}

// count publishes what happens too often to be counted where others can see it.
func (r *reactor) count() {
	if r.passed > 0 {
		add(&r.handed, r.passed)
	}
	if r.gone > 0 {
		add(&r.ended, r.gone)
	}
	r.passed, r.gone = 0, 0
}

// take returns a process that is running from here on, and nowhere else.
func (r *reactor) take() *core {
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

// steal takes half of what another has.
func (r *reactor) steal() *core {
	all := r.sys.reactors
	for i := range all {
		victim := all[(int(r.s.Index())+1+i)%len(all)]
		if victim == r {
			continue
		}
		if _, list := victim.queue.trySteal(mostSteal); list != nil {
			return r.share(list)
		}
	}
	return nil
}

// share keeps the first of what was stolen, and puts the others into the own queue.
func (r *reactor) share(first *core) *core {
	rest := first.next
	first.next = nil
	add(&r.stolen, 1)
	for rest != nil {
		c := rest
		rest, c.next = c.next, nil
		add(&r.stolen, 1)
		r.enqueue(c, false)
	}
	return first
}

// begin makes a process running that has been taken out of a queue. It reports false if that has ended: all were, while
// somebody was about to put it there.
func (c *core) begin() bool {
	for looks := 0; ; looks++ {
		w := c.word.Load()
		if w&(locked|states) == dead {
			return false
		}
		if w&locked == 0 && c.word.CompareAndSwap(w, w&^states|running) {
			return true
		}
		patience(looks)
	}
}

// run gives c its turn, and returns what that counts for.
func (r *reactor) run(c *core) (cost int) {
	r.current, c.on = c, r
	if c.home == 0 {
		c.remind()
	}
	c.left, c.cut, c.borrowed = r.sys.cfg.Messages, false, false
	if c.word.Load()&killed != 0 {
		r.end(c, 0)
		return 1
	}
	d := c.body.turn()
	cost = max(1, int(r.sys.cfg.Messages-c.left))
	r.conclude(c, d) // from here on c is others'
	r.current = nil
	return cost
}

// conclude does as the verdict of a turn says.
func (r *reactor) conclude(c *core, d act.Directive) {
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
			r.enlist(c)
		}
		r.pause(c, d)
	}
}

// pause has c sleep, wait for room, or go on behind those who are queued.
func (r *reactor) pause(c *core, d act.Directive) {
	switch {
	case d == act.Wait && !c.cut && !c.indebted():
		if !c.bulk && c.sleep() {
			return
		}
		asleep, free := c.rest(r)
		r.release(free)
		if !asleep {
			r.again(c)
		}
	case c.indebted():
		blocks, free := c.block(r)
		r.release(free)
		if !blocks {
			r.again(c)
		}
	default:
		r.release(c.requeue(r))
		r.again(c)
	}
}

// again queues c behind its turn. If nobody else is ready here it is about to have the next one, and whoever is idle
// had better stay so: else a process with a lot to do would go from reactor to reactor.
func (r *reactor) again(c *core) {
	if r.next == nil && r.queue.length() == 0 {
		if ok, _ := r.queue.tryEnqueue(c); ok {
			return
		}
	}
	r.enqueue(c, false)
}

// call wakes somebody who is idle if the tasks of this scheduler take so long that those in the queue are better off
// elsewhere.
func (r *reactor) call() {
	if r.paused == 0 || r.queue.empty() || r.s.Now()-r.paused <= slice {
		return
	}
	if x := r.sys.idle.pop(); x != nil {
		x.ring()
	}
}

// yield lets go of what was handed on here.
func (r *reactor) yield() {
	if c := r.next; c != nil {
		r.next = nil
		r.release(c.requeue(r))
		r.again(c)
	}
}

// adapt makes the next turn shorter after one that took too long, since sockets wait for it, and else longer again.
func (r *reactor) adapt() {
	if r.paused = r.s.Clock().Monotonic(); r.paused-r.s.Now() > slice {
		r.budget = max(1, r.budget/2)
	} else {
		r.budget = min(r.sys.cfg.Turn, r.budget*2)
	}
}

// rescue makes a panic the end of the process whose turn it was.
func (r *reactor) rescue(more *bool) {
	if hook.Crashes(r.s) {
		return
	}
	v := recover()
	c := r.current
	if v == nil {
		return
	}
	*more = true
	if c == nil {
		panic(v) // it is ours
	}
	r.fail(c, panics.Recovered(v))
}

// enqueue has c, which is queued, run here, or by whoever is idle: how long the turn under way will last, and those in
// front of c, nobody knows. If r was asleep, it has just got up for c, which is its first.
func (r *reactor) enqueue(c *core, asleep bool) {
	if x := r.put(c); x != r {
		x.ring() // and may be in a long turn
	}
	if asleep {
		return
	}
	if y := r.sys.idle.pop(); y != nil {
		y.ring() // which steals it
	}
}

// put puts c into the queue of r, or the next one that is not locked.
func (r *reactor) put(c *core) *reactor {
	if ok, _ := r.queue.tryEnqueue(c); ok {
		return r
	}
	return r.sys.put(c, r.s.Index())
}

// getUp wakes r, on its thread, if it has been waiting, and tells whether it has: something is to become ready.
func (r *reactor) getUp() bool {
	if !r.waiting {
		return false
	}
	r.waiting = false
	r.sys.idle.remove(r)
	r.hold()
	r.waker.Wake()
	return true
}

// ring wakes r, from any goroutine: one interrupt, however many ring.
func (r *reactor) ring() { r.bell.Wake() }

// lastLook looks before r waits, and reports whether it may.
func (r *reactor) lastLook() bool {
	sys := r.sys
	if !r.disarmed.Empty() {
		r.waiting = false
		return false
	}
	now := sys.idle.push(r)
	landed := sys.pending.Load() == 0 // before the queues, where that has been put which is not pending any more
	if !sys.empty() {
		sys.idle.remove(r)
		r.waiting = false
		return false
	}
	if now.idle == sys.running() && now == sys.idle.now() {
		sys.quiet(r, now, landed) // nobody has done anything since all became idle, and nothing is left
	}
	return true
}

func (r *reactor) hold() {
	if !r.holding.Load() {
		r.holding.Store(true)
		r.s.Hold(1)
	}
}

// letGo is the end of hold.
func (r *reactor) letGo() {
	if r.holding.Load() {
		r.holding.Store(false)
		r.s.Hold(-1)
	}
}

// release lets those go on who have waited for room.
func (r *reactor) release(free []waiter) {
	for _, w := range free {
		w.roomFor(r)
	}
}

// String is what a Cut calls it.
func (r *reactor) String() string { return "process.System" }

// add is for a counter that only one thread writes. It returns what that is now.
func add(c *counter, n int64) int64 {
	n += c.Load()
	c.Store(n)
	return n
}
