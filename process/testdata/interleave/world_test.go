package process

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/steps"
	bells "github.com/daimon-go/daimon/internal/steps/bells"
	"github.com/daimon-go/daimon/shutdown"
	"go.uber.org/zap"
)

// world is a System whose runners are threads of a tester, with a model of each process and lock.
//
// A runner's thread does what its scheduler would do: it calls the real Act when the real wakers have made it ready,
// and runs tasks between two turns. The schedulers are real, but never run.
type world struct {
	*tester
	sys       *System
	loops     loops
	procs     []*proc
	known     []*proc // in random worlds: the processes whose Spawn has returned
	named     int     // the number of these
	byCore    map[*core]*proc
	shadows   map[unsafe.Pointer]*shadow
	inquiries []*inquiry
	bells     bool // other threads may run between the steps of a wake-up
	over      bool // the runners' threads end
	dropped   bool // all processes have been ended once
	closed    bool // the Group is closed
	noneRests bool // no scheduler is known to be asleep
	fresh     bool // the schedulers are new in each run
	active    int  // active processes: neither asleep nor dead
	pending   int  // timers and operations without a message yet
	checks    []func()
	given     bool // an order was given
	arriving  int  // the active processes that a call which has not returned has woken
}

// loops are the schedulers of one Group, which worlds use one after another.
type loops []*loop

// loop is the demon of a scheduler. Its turn only records that it is due. The turn of the runner is taken outside,
// where it can be interrupted.
type loop struct {
	s      *act.Scheduler
	t      *act.Task
	r      *runner
	todo   []func() // the tasks
	due    bool     // the runner has a turn
	leaves bool     // the scheduler leaves Run
	orders []shutdown.Order
}

func (x *loop) Act(t *act.Task) act.Directive {
	x.t, x.due = t, true
	return act.Wait
}

func (x *loop) Stop(_ *act.Task, o shutdown.Order) { x.orders = append(x.orders, o) }

// stopped is a Clock that does not move.
type stopped struct{}

func (stopped) Monotonic() time.Duration { return 0 }
func (stopped) Wall() time.Time          { return time.Time{} }

func newLoops(n int) loops {
	g := act.NewGroup(act.Config{Schedulers: n, Inbox: 1, Clock: stopped{}, Logger: zap.NewNop()})
	var all loops
	for _, s := range g.Schedulers() {
		x := &loop{s: s}
		s.Attach(x)
		s.Internals().KeepRunning(1) // it never finishes
		all = append(all, x)
	}
	return all
}

// clear removes what an earlier world has left.
func (x *loop) clear() {
	if x.t != nil {
		x.t.Waker().Wake()
	}
	for {
		if n, err := x.s.Step(1); err != nil {
			panic(err)
		} else if n == 0 {
			break
		}
	}
	x.t.Waker().Wake() // the first turn
	x.todo, x.leaves = nil, false
}

func newWorld(c chooser, all loops, messages, batch int) *world {
	w := &world{tester: newTester(c), loops: all, byCore: map[*core]*proc{}, shadows: map[unsafe.Pointer]*shadow{}}
	w.sys = New()
	w.sys.messages, w.sys.batch = cmp.Or(messages, w.sys.messages), cmp.Or(batch, w.sys.batch)
	for _, x := range all {
		x.clear()
	}
	steps.Watching, bells.Watching = nil, nil
	if err := w.sys.join(all[0].s.Group()); err != nil {
		panic(err)
	}
	w.setShadow(&w.sys.idle.word, &shadow{kind: ofIdleStack, name: "idle"})
	for i, r := range w.sys.runners {
		x := all[i]
		x.r = r
		locals.Get(x.s).runner = r
		r.keepRun()
		r.inRun.Store(true)
		r.isSetUp.Store(true)
		w.setShadow(&r.queue.word, &shadow{kind: ofQueue, name: fmt.Sprintf("queue %d", i), r: r})
		w.setShadow(&r.idle, &shadow{kind: ofIdle, name: fmt.Sprintf("idle %d", i), r: r})
		for _, n := range []*counter{&r.made, &r.ended, &r.handed, &r.stolen, &r.dropped} {
			w.shadowAt(unsafe.Pointer(n), &shadow{kind: ofCount, name: "a count"}, false)
		}
		w.thread(fmt.Sprintf("runner %d", i), func() { w.serve(x) })
	}
	for _, n := range []*counter{&w.sys.outside.made, &w.sys.outside.ended} {
		w.shadowAt(unsafe.Pointer(n), &shadow{kind: ofCount, name: "a count"}, false)
	}
	steps.Watching, bells.Watching = recorder{w, false}, recorder{w, true}
	rests = func(s *act.Scheduler) bool { return !w.noneRests && !w.threads[s.Index()].busy }
	return w
}

// end ends the runners' threads, if nothing was found.
func (w *world) end() {
	w.over = true
	if w.finding == "" {
		w.run(false)
	}
	steps.Watching, bells.Watching = nil, nil
	for _, x := range w.loops {
		x.r.releaseRun()
	}
}

// serve is the thread of a scheduler.
func (w *world) serve(x *loop) {
	for !w.over {
		if x.leaves {
			locals.Get(x.s).Leave()
			return
		}
		ready := w.step(x)
		for _, o := range x.orders {
			x.r.Stop(x.t, o)
		}
		x.orders = nil
		if len(x.todo) > 0 && (!ready || w.pick(2) == 0) { // the task is ready now, or later
			f := x.todo[0]
			x.todo = x.todo[1:]
			f()
		} else if !ready {
			w.await(forWakeUp, func() bool { return w.over || x.leaves || len(x.todo) > 0 || w.called(x) })
		}
		if ready {
			w.turn(x)
		}
	}
}

// step reports whether the demon is ready, and begins its turn then. Each turn of a task is one step.
func (w *world) step(x *loop) bool {
	w.atomic++
	defer func() { w.atomic-- }()
	x.due = false
	for !x.due {
		if n, err := x.s.Step(1); err != nil {
			panic(err)
		} else if n == 0 {
			break
		}
	}
	return x.due
}

// called reports whether the scheduler's inbox has an event.
func (w *world) called(x *loop) bool {
	when, more := x.s.NextDeadline()
	return more && when <= 0 // the clock does not move
}

// turn is a turn of the runner. A turn that has made no progress, since all that it looked at was locked, is not
// repeated before another thread has made progress.
func (w *world) turn(x *loop) {
	t := w.now
	before, others := t.progress, w.progress-t.progress
	t.busy = true
	d := x.r.Act(x.t)
	t.busy = false
	switch d {
	case act.Yield:
		x.t.Waker().Wake()
		if t.progress == before {
			w.await("anything to run, again and again,", func() bool { return w.progress-t.progress > others })
		}
	case act.Wait:
	default:
		w.fail("the turn of a runner ends with %v", d)
	}
}

// recorder reports the steps to the world: the package's own, or the steps of wake-ups.
type recorder struct {
	w     *world
	bells bool
}

func (x recorder) Before(at unsafe.Pointer) {
	if x.w.trackNew(); x.bells && !x.w.bells {
		return
	}
	if x.w.at(at, x.bells).kind != ofCount {
		x.w.point()
	}
}

func (x recorder) After(at unsafe.Pointer, was, now uint64, wrote bool) {
	w := x.w
	g := w.at(at, x.bells)
	w.after(g, was, now, wrote, wrote && (g.kind == ofWord || g.kind == ofQueue))
	g.check(uint32(was), uint32(now), wrote)
	for _, q := range w.inquiries {
		q.look(w)
	}
}

func (x recorder) Await()  { x.w.Await() }
func (x recorder) Looked() { x.w.Looked() }

// inquiry is a call of Quiescent.
type inquiry struct {
	f         *future.Future[struct{}]
	quiescent bool // at any moment since the call
}

// look checks that the answer is right.
func (q *inquiry) look(w *world) {
	if w.quiescent() {
		q.quiescent = true
	}
	if !q.quiescent && q.f != nil && q.f.Resolved() {
		w.fail("quiescence was announced, and has not been true since the call")
	}
}

// quiescent reports whether nothing is ready. Messages and processes of calls that have not returned do not count.
func (w *world) quiescent() bool { return w.active == w.arriving && w.pending == 0 }

// ask calls Quiescent.
func (w *world) ask() {
	q := &inquiry{quiescent: w.quiescent()}
	w.inquiries = append(w.inquiries, q)
	q.f = w.sys.Quiescent()
}

// trackNew finds the process that the current thread has spawned and queues.
func (w *world) trackNew() {
	for _, r := range w.sys.runners {
		if c := r.queue.last; c != nil && w.byCore[c] == nil {
			w.track(c)
		}
	}
}

func (w *world) track(c *core) {
	p := c.body.action().(*proc)
	w.byCore[c] = p
	w.procs = append(w.procs, p)
	p.core = c
	w.active++
	g := &shadow{kind: ofWord, name: p.name, c: c, holder: w.now}
	w.setShadow(&c.word, g)
	g.wakes()
	w.setShadow(&c.owner, &shadow{kind: ofOwner, name: p.name + "'s owner", c: c})
}

func (w *world) setShadow(at *word, g *shadow) { w.shadowAt(unsafe.Pointer(at), g, false) }

// shadowAt makes g the model of an address.
func (w *world) shadowAt(at unsafe.Pointer, g *shadow, bell bool) *shadow {
	g.w, g.id = w, w.numberOf(w.nameOf(at, bell))
	w.shadows[at] = g
	return g
}

// at returns the model of an address.
func (w *world) at(at unsafe.Pointer, bell bool) *shadow {
	if g := w.shadows[at]; g != nil {
		return g
	}
	k := w.nameOf(at, bell)
	g := &shadow{name: fmt.Sprintf("%s %d+%d", cmp.Or(k.of, "something"), k.index, k.offset)}
	if k.of == "registry" {
		g.kind = ofCount
	}
	return w.shadowAt(at, g, bell)
}

func (w *world) of(c *core) *shadow { return w.shadows[unsafe.Pointer(&c.word)] }

// shadow is the model of a word: which thread may change it, and how.
type shadow struct {
	id       int // the number of the address, the same in all runs
	w        *world
	kind     kind
	name     string
	c        *core
	r        *runner
	lockedBy *thread
	arriving *thread // the thread whose call queues the process
	holder   *thread // the thread that runs the process, or is about to queue it; nil: it sleeps or is in a queue
}

type kind uint8

const (
	ofNothing kind = iota
	ofWord
	ofOwner
	ofQueue
	ofIdleStack
	ofIdle
	ofCount // never a place to preempt
)

func (g *shadow) check(was, now uint32, wrote bool) {
	if !wrote {
		return
	}
	switch g.kind {
	case ofWord:
		g.checkLock(was&locked, now&locked, locked)
		g.checkState(was&states, now&states)
	case ofOwner:
		g.checkOwner(now)
	case ofQueue:
		g.checkLock(was&1, now&1, 1)
		if now&1 == 0 {
			g.checkQueue(now >> 1)
		}
	case ofIdleStack:
		g.checkLock(was&1, now&1, 1)
		if now&1 == 0 {
			g.checkIdleStack(now >> 1)
		}
	case ofIdle:
		if x := g.w.shadows[unsafe.Pointer(&g.w.sys.idle.word)]; x.lockedBy != g.w.now {
			g.w.fail("%s is changed without the lock of the stack", g.name)
		}
	}
}

// checkLock checks that only the thread that has locked the word changes it.
func (g *shadow) checkLock(was, now uint32, bit uint32) {
	me := g.w.now
	switch {
	case was&bit != 0 && g.lockedBy != me:
		g.w.fail("%s is changed by %s while %s has locked it", g.name, me.name, g.lockedBy.name)
	case now&bit != 0:
		g.lockedBy = me
	case was&bit != 0:
		g.lockedBy = nil
	}
}

// checkState checks a change of a process's state.
func (g *shadow) checkState(was, now uint32) {
	w := g.w
	if was == now {
		return
	}
	asleep := func(state uint32) bool { return state == sleeping || state == dead }
	if asleep(was) && !asleep(now) {
		w.active++
	} else if !asleep(was) && asleep(now) {
		w.active--
	}
	me := w.now
	switch {
	case was == dead:
		w.fail("%s is dead, and made %s", g.name, stateName(now))
	case now == dead && w.over: // all processes are ended
		g.arrived()
	case was == sleeping && now == queued:
		g.holder = me
		g.wakes()
	case was == sleeping && now == running:
		g.holder = me
	case was == queued && now == running && g.holder != me:
		w.fail("%s is made running by %s, which has not taken it out of a queue", g.name, me.name)
	case was == queued && now == running:
		g.arrived()
	case was == running && g.holder != me:
		w.fail("%s is made %s by %s, which does not run it", g.name, stateName(now), me.name)
	case was == running && now == queued:
	case was == running:
		g.holder = nil
		if now == dead && g.c.why == Panicked && g.c.rare.err.Error() != "panic: "+onPurpose {
			w.fail("%s panics: %v", g.name, g.c.rare.err)
		}
	default:
		w.fail("%s is %s and made %s", g.name, stateName(was), stateName(now))
	}
}

// wakes is called when a process is queued that slept, or is new.
func (g *shadow) wakes() {
	if me := g.w.now; !me.busy {
		g.arriving = me
		g.w.arriving++
		me.waking = append(me.waking, g)
	}
}

// arrived ends wakes.
func (g *shadow) arrived() {
	if g.arriving != nil {
		g.arriving = nil
		g.w.arriving--
	}
}

// returned is called when a thread returns from a call that may wake processes.
func (w *world) returned() {
	for _, g := range w.now.waking {
		if g.arriving == w.now {
			g.arrived()
		}
	}
	w.now.waking = nil
}

// checkOwner checks a change of the queue that a process is in.
func (g *shadow) checkOwner(now uint32) {
	w := g.w
	c := w.of(g.c)
	if now == 0 {
		c.holder = w.now
		return
	}
	q := w.shadows[unsafe.Pointer(&w.sys.runners[now-1].queue.word)]
	switch {
	case q.lockedBy != w.now:
		w.fail("%s is put into %s, which is not locked", c.name, q.name)
	case !w.belongs(g.c):
		w.fail("%s is put into %s while it is %s", c.name, q.name, stateName(g.c.word.Peek()&states))
	case c.holder != w.now:
		w.fail("%s is put into %s by %s, which does not have it", c.name, q.name, w.now.name)
	}
	c.holder = nil
}

// belongs reports whether c may be in a queue. When all processes are ended, one may still be on its way there.
func (w *world) belongs(c *core) bool {
	state := c.word.Peek() & states
	return state == queued || state == dead && w.dropped
}

// checkQueue checks the links and the length of a queue.
func (g *shadow) checkQueue(length uint32) {
	n, prev := uint32(0), (*core)(nil)
	q := &g.r.queue
	for c := q.first; c != nil && n <= length; c = c.links[queueLinks].next {
		if c.links[queueLinks].prev != prev || c.owner.Peek() != q.id || !g.w.belongs(c) {
			g.w.fail("%s is in %s, %s, and owned by %d", g.w.of(c).name, g.name, stateName(c.word.Peek()&states), c.owner.Peek())
		}
		prev = c
		n++
	}
	if n != length || q.last != prev {
		g.w.fail("%s says that it has %d processes, and has %d", g.name, length, n)
	}
}

// checkIdleStack checks the stack of idle runners.
func (g *shadow) checkIdleStack(n uint32) {
	x := &g.w.sys.idle
	on := map[*runner]int{}
	for _, r := range x.stack {
		on[r]++
	}
	if int(n) != len(x.stack) {
		g.w.fail("the idle stack says that it has %d, and has %d", n, len(x.stack))
	}
	for i, r := range g.w.sys.runners {
		if on[r] != int(r.idle.Peek()) {
			g.w.fail("runner %d is %d times on the idle stack, and says %d", i, on[r], r.idle.Peek())
		}
	}
}

func stateName(state uint32) string {
	switch state {
	case sleeping:
		return "sleeping"
	case queued:
		return "queued"
	case running:
		return "running"
	}
	return "dead"
}

// runUntilIdle runs until no thread can continue, and checks the world. It reports false if something was found.
func (w *world) runUntilIdle(chosen bool) bool {
	w.run(chosen)
	if w.finding == "" {
		w.checkStuck()
	}
	switch {
	case w.finding != "":
	case w.closed:
		w.checkClosed()
	default:
		w.checkIdle()
	}
	for _, check := range w.checks {
		check()
	}
	return w.finding == ""
}

// checkStuck fails if a thread waits for ever.
func (w *world) checkStuck() {
	var all []string
	for _, t := range w.threads {
		if !t.ended && !t.idles() {
			all = append(all, fmt.Sprintf("%s waits for %s", t.name, t.waits))
		}
	}
	if all != nil {
		w.fail("for ever: %s", strings.Join(append(all, w.queuedLeft()...), "; "))
	}
}

// queuedLeft describes the processes in queues.
func (w *world) queuedLeft() (all []string) {
	for i, r := range w.sys.runners {
		if n := r.queue.word.Peek(); n != 0 {
			all = append(all, fmt.Sprintf("%d in queue %d", n>>1, i))
		}
	}
	return all
}

// checkClosed checks a world in which all runners are closed.
func (w *world) checkClosed() {
	for _, p := range w.procs {
		if !p.dead() {
			w.fail("%s is %s, and all runners are closed", p.name, stateName(p.core.word.Peek()&states))
		}
	}
	if n := w.sys.Alive(); n != 0 {
		w.fail("all runners are closed, and the System counts %d as alive", n)
	}
	w.checkCounts()
}

// endRun ends the runners' threads after their turns, as at the end of Run.
func (w *world) endRun() {
	w.over, w.dropped = true, true
	w.await("the runners", func() bool {
		for _, t := range w.threads[:len(w.loops)] {
			if !t.ended {
				return false
			}
		}
		return true
	})
}

// close ends Run and closes the Group.
func (w *world) close() {
	w.endRun()
	for _, x := range w.loops {
		_ = locals.Get(x.s).Close()
	}
	w.closed = true
}

// runAgain ends Run, which drops all processes, and begins the next Run.
func (w *world) runAgain() {
	w.endRun()
	for _, x := range w.loops {
		locals.Get(x.s).Drop()
	}
	w.over = false
	for i, x := range w.loops {
		if err := w.sys.Setup(x.s); err != nil {
			panic(err)
		}
		w.thread(fmt.Sprintf("runner %d, again", i), func() { w.serve(x) })
	}
}

// checkIdle checks a world in which all runners are idle.
func (w *world) checkIdle() {
	for i, r := range w.sys.runners {
		switch {
		case r.queue.word.Peek() != 0:
			w.fail("runner %d is idle, as all others are, while its queue has %d", i, r.queue.word.Peek()>>1)
		case r.next != nil:
			w.fail("runner %d is idle, and has a next process", i)
		case r.inRun.Load() && r.idle.Peek() != 1:
			w.fail("runner %d is idle, and not on the idle stack", i)
		case !r.inRun.Load() && r.idle.Peek() != 0:
			w.fail("runner %d has left Run, and is on the idle stack", i)
		}
	}
	alive, keeping := 0, 0
	for _, p := range w.procs {
		alive += p.checkIdle()
	}
	for _, r := range w.sys.runners {
		if r.keepsRun.Load() {
			keeping++
		}
	}
	if ordered := w.sys.runners[0].ordered; !ordered && alive > 0 && keeping == 0 {
		w.fail("%d processes are alive, and no runner keeps Run from returning", alive)
	} else if (alive == 0 || ordered) && keeping > 0 {
		w.fail("%d processes are alive, an order is in force: %v, and %d runners keep Run from returning", alive, ordered, keeping)
	}
	if n := w.sys.Alive(); n != alive {
		w.fail("%d processes are alive, and the System counts %d", alive, n)
	}
	for _, q := range w.inquiries {
		if !q.f.Resolved() && w.sys.pending.Load() == 0 {
			w.fail("the System is quiescent, and the future is not resolved")
		}
	}
	w.checkCounts()
}

// checkCounts checks that every message was received, refused, or dropped and counted.
func (w *world) checkCounts() {
	sent, received, left, dropped := 0, 0, 0, w.sys.outside.dropped.Load()
	for _, r := range w.sys.runners {
		dropped += r.dropped.Load()
	}
	for _, p := range w.procs {
		sent += p.sent
		received += p.received
		left += p.left()
	}
	if sent != received+int(dropped)+left+w.pending {
		w.fail("%d messages were sent, %d received, %d dropped, and %d are left", sent, received, dropped, left)
	}
}

// trace returns the steps, one a line, the latest last.
func (w *world) trace() string {
	var b strings.Builder
	all := w.history
	if n := len(all) - 250; n > 0 {
		fmt.Fprintf(&b, "\t… %d steps before\n", n)
		all = all[n:]
	}
	last := (*thread)(nil)
	for _, e := range all {
		name := e.by.name
		if e.by == last {
			name = ""
		}
		last = e.by
		switch {
		case e.at == nil:
			fmt.Fprintf(&b, "\t%-12s %s\n", name, e.note)
		case e.at.kind == ofCount, e.at.kind == ofNothing && !e.wrote:
		case e.wrote:
			fmt.Fprintf(&b, "\t%-12s %s: %s → %s\n", name, e.at.name, e.at.show(e.was), e.at.show(e.now))
		default:
			fmt.Fprintf(&b, "\t%-12s %s is %s\n", name, e.at.name, e.at.show(e.was))
		}
	}
	return b.String()
}

// nameOf names an address: what it belongs to, and its offset.
func (w *world) nameOf(at unsafe.Pointer, bell bool) key {
	within := func(base unsafe.Pointer, size uintptr) bool { return uintptr(at)-uintptr(base) < size }
	if base := unsafe.Pointer(w.sys); within(base, unsafe.Sizeof(*w.sys)) {
		return key{"sys", 0, uintptr(at) - uintptr(base)}
	}
	for i, r := range w.sys.runners {
		if base := unsafe.Pointer(r); within(base, unsafe.Sizeof(*r)) {
			return key{"runner", i, uintptr(at) - uintptr(base)}
		}
		if base := unsafe.Pointer(&w.sys.registries[i]); within(base, unsafe.Sizeof(w.sys.registries[i])) {
			return key{"registry", i, uintptr(at) - uintptr(base)}
		}
	}
	for _, p := range w.procs {
		if base := unsafe.Pointer(p.core); within(base, unsafe.Sizeof(*p.core)) {
			return key{p.name, 0, uintptr(at) - uintptr(base)}
		}
	}
	if bell && !w.fresh {
		return key{"waker", 0, uintptr(at)} // it belongs to the scheduler
	}
	return key{}
}

func (g *shadow) show(v uint64) string {
	w := uint32(v)
	switch g.kind {
	case ofWord:
		s := stateName(w & states)
		for i, name := range []string{"locked", "mail", "poked", "killed", "orderPending", "roomWanted", "blocked"} {
			if w>>i&1 != 0 {
				s += "|" + name
			}
		}
		return s
	case ofQueue, ofIdleStack:
		s := fmt.Sprint(w >> 1)
		if w&1 != 0 {
			s += "|locked"
		}
		return s
	}
	return fmt.Sprint(v)
}

// msg is a message with its sender and what its receiver does.
type msg struct {
	from string
	n    int // the number of the message from this sender to this receiver, from 1
	do   func(p *Self[msg])
}

// proc is a process of a world, and its Action.
type proc struct {
	w     *world
	name  string
	core  *core
	ref   Ref[msg]
	first func(p *Self[msg]) // called in its first turn
	lazy  bool               // it receives one message in each turn
	spare int                // it leaves so many messages in its mailbox

	bounded bool // it does not reject

	here     *thread        // the thread that it runs on
	heard    map[string]int // the last message received, by sender
	numbers  map[string]int // the last message sent, by sender
	sent     int            // including those to an ended process
	received int
	orders   int
}

// spawn spawns a process during set-up.
func (w *world) spawn(name string, o Options, first func(p *Self[msg])) *proc {
	return w.spawnFrom(w.sys, name, o, first)
}

func (w *world) spawnFrom(from Sender, name string, o Options, first func(p *Self[msg])) *proc {
	p := &proc{w: w, name: name, first: first, heard: map[string]int{}, numbers: map[string]int{}}
	p.ref = Spawn(from, p, o)
	w.trackNew()
	w.returned()
	return p
}

// Act implements Action.
func (x *proc) Act(p *Self[msg]) act.Directive {
	if x.here != nil {
		x.w.fail("%s has a turn in %s and in %s at once", x.name, x.here.name, x.w.now.name)
	}
	x.here = x.w.now
	defer func() { x.here = nil }()
	x.w.note("the turn of %s", x.name)
	if f := x.first; f != nil {
		x.first = nil
		f(p)
	}
	for {
		if x.spare > 0 && len(p.out)-int(p.pos) <= x.spare {
			return act.Wait
		}
		m, ok := p.Receive()
		if !ok {
			return act.Wait
		}
		x.check(m)
		if m.do != nil {
			m.do(p)
		}
		if x.lazy {
			return act.Yield
		}
	}
}

func (x *proc) String() string { return x.name }

func (x *proc) check(m msg) {
	x.received++
	x.w.note("%s receives %s's %d", x.name, m.from, m.n)
	if m.n <= x.heard[m.from] {
		x.w.fail("%s receives %s's %d after its %d", x.name, m.from, m.n, x.heard[m.from])
	}
	x.heard[m.from] = m.n
	if m.from == "later" {
		x.w.pending--
	}
}

// later returns a message of a timer or an operation.
func (x *proc) later() msg {
	x.w.pending++
	return x.extra("later")
}

// extra returns a message that no bound refuses.
func (x *proc) extra(from string) msg {
	x.sent++
	x.numbers[from]++
	return msg{from: from, n: x.numbers[from]}
}

func (x *proc) dead() bool { return x.core.word.Peek()&states == dead }

// send sends on behalf of a thread or process.
func (w *world) send(from Sender, name string, to *proc, do func(p *Self[msg])) error {
	to.numbers[name]++
	m := msg{name, to.numbers[name], do}
	err := to.ref.Send(from, m)
	w.returned()
	w.of(to.core).arrived() // even if another thread has queued it
	if _, blocked := err.(act.Blocked); !blocked {
		to.sent++
	}
	return err
}

// give is send for a process in its turn.
func (x *proc) give(p *Self[msg], to *proc) {
	_ = x.w.send(p, x.name, to, nil)
}

// deliver is send for a goroutine that waits for room.
func (w *world) deliver(name string, to *proc) {
	for {
		err := w.send(w.sys, name, to, nil)
		b, ok := err.(*blockedSend)
		if !ok {
			return
		}
		var heard signal
		if b.join(&heard) != nil {
			w.await("room", func() bool { return heard > 0 })
		}
	}
}

// signal is a waiter that counts its calls.
type signal int

func (x *signal) roomFree(*runner) { *x++ }
func (x *signal) hasEnded() bool   { return false }

// checkIdle checks a process when all runners are idle, and returns 1 if it is alive.
func (x *proc) checkIdle() int {
	w, c := x.w, x.core
	word := c.word.Peek()
	left := x.left()
	switch {
	case word&locked != 0:
		w.fail("%s is locked for ever", x.name)
	case word&states == dead:
		return 0
	case word&states != sleeping:
		w.fail("%s is %s for ever", x.name, stateName(word&states))
	case c.home == 0:
		w.fail("%s sleeps, and is not listed", x.name)
	case word&blocked != 0 && c.rare.debts == 0:
		w.fail("%s waits for room for ever: there is enough", x.name)
	case word&blocked != 0:
		w.fail("%s waits for room for ever: %d mailboxes have none", x.name, c.rare.debts)
	case c.rare != nil && c.rare.debts != 0:
		w.fail("%s sleeps, and waits for room in %d mailboxes", x.name, c.rare.debts)
	case w.given && x.orders == 0:
		w.fail("%s was not told of the order", x.name)
	case left > x.spare:
		w.fail("%s sleeps, and has %d messages", x.name, left)
	case word&signals != 0:
		w.fail("%s sleeps, and has signals: %s", x.name, w.of(c).show(uint64(word)))
	case word&roomWanted != 0 && left == 0:
		w.fail("%s sleeps, and a sender waits for room in its mailbox, which is empty", x.name)
	case c.owner.Peek() != 0:
		w.fail("%s sleeps, and its owner is queue %d", x.name, c.owner.Peek()-1)
	}
	return 1
}

// left returns the number of messages in the mailbox.
func (x *proc) left() int {
	p := x.core.body.(*Self[msg])
	return len(p.out) - int(p.pos) + len(p.in)
}

// Stop implements Stopper.
func (x *proc) Stop(*Self[msg], shutdown.Order) {
	if x.orders++; x.orders > 1 {
		x.w.fail("%s is told of one order twice", x.name)
	}
}

// onThread is the Sender of a task.
type onThread struct{ *loop }

func (x onThread) Scheduler() *act.Scheduler { return x.s }
