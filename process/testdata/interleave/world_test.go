package process

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/steps"
	bells "github.com/daimon-go/daimon/internal/steps/bells"
	"github.com/daimon-go/daimon/shutdown"
)

// world is a System whose runners are threads of a tester, with what is known of each process and lock.
//
// A runner's thread is what its scheduler's would be: it gives the demon its turns, by the real Act, when that is
// ready by the real wakers, and does what tasks would do between two of them. The schedulers are real and never run.
type world struct {
	*tester
	sys      *System
	stations stations
	procs    []*proc
	known    []*proc // whose Spawn has returned: those of random worlds
	named    int     // of those
	byCore   map[*core]*proc
	ghosts   map[unsafe.Pointer]*ghost
	wishes   []*wish
	bells    bool // others may come between the steps of a bell
	over     bool // the threads of runners end
	dropped  bool // all processes have been ended once
	closed   bool // for good
	alone    bool // without runners
	fresh    bool // the schedulers were not there in earlier runs
	awake    int  // processes that neither sleep nor are dead
	underway int  // timers and operations that have not been heard of
	checks   []func()
	given    bool // an order
	coming   int  // of those, who slept before somebody's call that has not returned
}

// stations are the schedulers of one Group, which worlds use one after another.
type stations []*station

// station is a scheduler's demon. Its turn in the scheduler only notes that there is one: that of the runner is
// taken outside, where it can be interrupted.
type station struct {
	s      *act.Scheduler
	t      *act.Task
	r      *runner
	todo   []func() // what tasks do
	due    bool     // the turn of the runner
	leaves bool     // Run
	orders []shutdown.Order
}

func (x *station) Act(t *act.Task) act.Directive {
	x.t, x.due = t, true
	return act.Wait
}

func (x *station) Stop(_ *act.Task, o shutdown.Order) { x.orders = append(x.orders, o) }

// stopped is a Clock.
type stopped struct{}

func (stopped) Monotonic() time.Duration { return 0 }
func (stopped) Wall() time.Time          { return time.Time{} }

func newStations(n int) stations {
	g := act.NewGroup(act.Config{Schedulers: n, Inbox: 1, Clock: stopped{}, Logger: zap.NewNop()})
	var all stations
	for _, s := range g.Schedulers() {
		x := &station{s: s}
		s.Attach(x)
		s.Hold(1) // it never is empty
		all = append(all, x)
	}
	return all
}

// clear forgets what an earlier world has left.
func (x *station) clear() {
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

func newWorld(c chooser, all stations, cfg Config) *world {
	w := &world{tester: newTester(c), stations: all, byCore: map[*core]*proc{}, ghosts: map[unsafe.Pointer]*ghost{}}
	w.sys = New(cfg)
	for _, x := range all {
		x.clear()
	}
	steps.Watching, bells.Watching = nil, nil
	if err := w.sys.join(all[0].s.Group()); err != nil {
		panic(err)
	}
	w.know(&w.sys.idle.word, &ghost{kind: ofIdleStack, name: "idle"})
	for i, r := range w.sys.runners {
		x := all[i]
		x.r = r
		locals.Get(x.s).runner = r
		r.keepRun()
		r.inRun.Store(true)
		r.isSetUp.Store(true)
		w.know(&r.queue.word, &ghost{kind: ofQueue, name: fmt.Sprintf("queue %d", i), r: r})
		w.know(&r.idle, &ghost{kind: ofIdle, name: fmt.Sprintf("idle %d", i), r: r})
		for _, n := range []*counter{&r.made, &r.ended, &r.handed, &r.stolen, &r.dropped} {
			w.haunt(unsafe.Pointer(n), &ghost{kind: ofCount, name: "a count"}, false)
		}
		w.thread(fmt.Sprintf("runner %d", i), func() { w.serve(x) })
	}
	for _, n := range []*counter{&w.sys.outside.made, &w.sys.outside.ended} {
		w.haunt(unsafe.Pointer(n), &ghost{kind: ofCount, name: "a count"}, false)
	}
	steps.Watching, bells.Watching = tap{w, false}, tap{w, true}
	return w
}

// withoutReactors is for cases in which nobody runs processes.
func (w *world) withoutReactors() {
	w.alone = true
	for _, t := range w.threads {
		t.stop()
	}
	w.threads = nil
}

// end lets the threads of runners go, if nothing was found.
func (w *world) end() {
	w.over = true
	if w.finding == "" {
		w.run(false)
	}
	steps.Watching, bells.Watching = nil, nil
	for _, x := range w.stations {
		x.r.releaseRun()
	}
}

// serve is the thread of a scheduler.
func (w *world) serve(x *station) {
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
		if len(x.todo) > 0 && (!ready || w.pick(2) == 0) { // a task is ready now, or later
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

// step reports whether the demon is ready, and begins its turn then. The turns of tasks, if there are some, are one step
// each.
func (w *world) step(x *station) bool {
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

// called reports whether something is in the inbox.
func (w *world) called(x *station) bool {
	when, more := x.s.NextDeadline()
	return more && when <= 0 // the clock stands still
}

// turn is one of the runner. One that has achieved nothing, because all that it looked at was locked, is not repeated
// before somebody else has done something.
func (w *world) turn(x *station) {
	t := w.now
	before, others := t.efforts, w.efforts-t.efforts
	t.busy = true
	d := x.r.Act(x.t)
	t.busy = false
	switch d {
	case act.Yield:
		x.t.Waker().Wake()
		if t.efforts == before {
			w.await("anything to run, over and over again,", func() bool { return w.efforts-t.efforts > others })
		}
	case act.Wait:
	default:
		w.fail("the turn of a runner ends with %v", d)
	}
}

// tap brings the steps to the world: those of the package, or those of bells.
type tap struct {
	w     *world
	bells bool
}

func (x tap) Before(at unsafe.Pointer) {
	if x.w.discover(); x.bells && !x.w.bells {
		return
	}
	if x.w.at(at, x.bells).kind != ofCount {
		x.w.point()
	}
}

func (x tap) After(at unsafe.Pointer, was, now uint64, wrote bool) {
	w := x.w
	g := w.at(at, x.bells)
	w.after(g, was, now, wrote, wrote && (g.kind == ofWord || g.kind == ofQueue))
	g.hear(uint32(was), uint32(now), wrote)
	for _, q := range w.wishes {
		q.look(w)
	}
}

func (x tap) Await()  { x.w.Await() }
func (x tap) Looked() { x.w.Looked() }

// wish is one to know when the System is quiescent.
type wish struct {
	f     *future.Future[struct{}]
	quiet bool // since it was asked, if only for a moment
}

// look finds an answer that is wrong.
func (q *wish) look(w *world) {
	if w.quiet() {
		q.quiet = true
	}
	if !q.quiet && q.f != nil && q.f.Resolved() {
		w.fail("it was said that nothing is ready any more, which has not been so since that was asked")
	}
}

// quiet reports whether nothing is ready. What is being sent or spawned by somebody outside of turns might as well
// come afterwards.
func (w *world) quiet() bool { return w.awake == w.coming && w.underway == 0 }

// ask asks when the System is quiescent.
func (w *world) ask() {
	q := &wish{quiet: w.quiet()}
	w.wishes = append(w.wishes, q)
	q.f = w.sys.Quiescent()
}

// discover finds who was spawned by the isSetUp thread, and is just being queued.
func (w *world) discover() {
	for _, r := range w.sys.runners {
		if c := r.queue.last; c != nil && w.byCore[c] == nil {
			w.born(c)
		}
	}
}

func (w *world) born(c *core) {
	p := c.body.action().(*proc)
	w.byCore[c] = p
	w.procs = append(w.procs, p)
	p.core = c
	w.awake++
	g := &ghost{kind: ofWord, name: p.name, c: c, holder: w.now}
	w.know(&c.word, g)
	g.come()
	w.know(&c.owner, &ghost{kind: ofOwner, name: p.name + "'s owner", c: c})
}

func (w *world) know(at *word, g *ghost) { w.haunt(unsafe.Pointer(at), g, false) }

// haunt makes g what is known of an address.
func (w *world) haunt(at unsafe.Pointer, g *ghost, bell bool) *ghost {
	g.w, g.id = w, w.numberOf(w.nameOf(at, bell))
	w.ghosts[at] = g
	return g
}

// at is what is known of an address.
func (w *world) at(at unsafe.Pointer, bell bool) *ghost {
	if g := w.ghosts[at]; g != nil {
		return g
	}
	k := w.nameOf(at, bell)
	g := &ghost{name: w.field(k)}
	if k.of == "registry" {
		g.kind = ofCount
	}
	return w.haunt(at, g, bell)
}

func (w *world) of(c *core) *ghost { return w.ghosts[unsafe.Pointer(&c.word)] }

// ghost is what is known of a word: who may change it, and how.
type ghost struct {
	id       int // the same in all runs
	w        *world
	kind     kind
	name     string
	c        *core
	r        *runner
	lockedBy *thread
	coming   *thread // whose call it is that brings it
	holder   *thread // who runs the process, or has it in its hands on the way into a queue; nil: it sleeps or is in one
}

type kind uint8

const (
	ofNothing kind = iota
	ofWord
	ofOwner
	ofQueue
	ofIdleStack
	ofIdle
	ofCount // others come neither before it nor after it
)

func (g *ghost) hear(was, now uint32, wrote bool) {
	if !wrote {
		return
	}
	switch g.kind {
	case ofWord:
		g.locking(was&locked, now&locked, locked)
		g.moved(was&states, now&states)
	case ofOwner:
		g.owned(now)
	case ofQueue:
		g.locking(was&1, now&1, 1)
		if now&1 == 0 {
			g.inOrder(now >> 1)
		}
	case ofIdleStack:
		g.locking(was&1, now&1, 1)
		if now&1 == 0 {
			g.stacked(now >> 1)
		}
	case ofIdle:
		if x := g.w.ghosts[unsafe.Pointer(&g.w.sys.idle.word)]; x.lockedBy != g.w.now {
			g.w.fail("%s is changed without the lock of the stack", g.name)
		}
	}
}

// locking follows who has locked the word: nobody else changes it.
func (g *ghost) locking(was, now uint32, bit uint32) {
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

// moved follows the state of a process.
func (g *ghost) moved(was, now uint32) {
	w := g.w
	if was == now {
		return
	}
	asleep := func(state uint32) bool { return state == sleeping || state == dead }
	if asleep(was) && !asleep(now) {
		w.awake++
	} else if !asleep(was) && asleep(now) {
		w.awake--
	}
	me := w.now
	switch {
	case was == dead:
		w.fail("%s is dead, and made %s", g.name, stateName(now))
	case now == dead && w.over: // all are ended
		g.came()
	case was == sleeping && now == queued:
		g.holder = me
		g.come()
	case was == sleeping && now == running:
		g.holder = me
	case was == queued && now == running && g.holder != me:
		w.fail("%s is made running by %s, which has not taken it out of a queue", g.name, me.name)
	case was == queued && now == running:
		g.came()
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

// come is called when a process is queued that slept, or was not there.
func (g *ghost) come() {
	if me := g.w.now; !me.busy {
		g.coming = me
		g.w.coming++
		me.brings = append(me.brings, g)
	}
}

// came is the end of come.
func (g *ghost) came() {
	if g.coming != nil {
		g.coming = nil
		g.w.coming--
	}
}

// returned is called when a thread has come to the end of something that may wake processes.
func (w *world) returned() {
	for _, g := range w.now.brings {
		if g.coming == w.now {
			g.came()
		}
	}
	w.now.brings = nil
}

// owned follows in which queue a process is.
func (g *ghost) owned(now uint32) {
	w := g.w
	c := w.of(g.c)
	if now == 0 {
		c.holder = w.now
		return
	}
	q := w.ghosts[unsafe.Pointer(&w.sys.runners[now-1].queue.word)]
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

// belongs reports whether c may be in a queue. If all are ended, that may come to one who is on its way there.
func (w *world) belongs(c *core) bool {
	state := c.word.Peek() & states
	return state == queued || state == dead && w.dropped
}

// inOrder looks whether a queue is what it says.
func (g *ghost) inOrder(length uint32) {
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

// stacked looks whether the stack of the idle is what it says.
func (g *ghost) stacked(n uint32) {
	x := &g.w.sys.idle
	on := map[*runner]int{}
	for _, r := range x.stack {
		on[r]++
	}
	if int(n) != len(x.stack) {
		g.w.fail("the stack of the idle says that it has %d, and has %d", n, len(x.stack))
	}
	for i, r := range g.w.sys.runners {
		if on[r] != int(r.idle.Peek()) {
			g.w.fail("runner %d is %d times on the stack of the idle, and says %d", i, on[r], r.idle.Peek())
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

// rest runs until nobody can do anything by himself, and looks whether that is as it should be. It reports false if
// something was found.
func (w *world) rest(chosen bool) bool {
	w.run(chosen)
	if w.finding == "" {
		w.stuck()
	}
	switch {
	case w.finding != "" || w.alone:
	case w.closed:
		w.buried()
	default:
		w.settled()
	}
	for _, check := range w.checks {
		check()
	}
	return w.finding == ""
}

// stuck finds who waits for ever.
func (w *world) stuck() {
	var all []string
	for _, t := range w.threads {
		if !t.ended && !t.rests() {
			all = append(all, fmt.Sprintf("%s waits for %s", t.name, t.waits))
		}
	}
	if all != nil {
		w.fail("for ever: %s", strings.Join(append(all, w.leftovers()...), "; "))
	}
}

// leftovers tells what is ready while nobody runs it.
func (w *world) leftovers() (all []string) {
	for i, r := range w.sys.runners {
		if n := r.queue.word.Peek(); n != 0 {
			all = append(all, fmt.Sprintf("%d in queue %d", n>>1, i))
		}
	}
	return all
}

// buried looks at a world in which all runners are closed.
func (w *world) buried() {
	for _, p := range w.procs {
		if !p.dead() {
			w.fail("%s is %s, and all runners are closed", p.name, stateName(p.core.word.Peek()&states))
		}
	}
	if n := w.sys.Stats().Alive; n != 0 {
		w.fail("all runners are closed, and the System counts %d who are alive", n)
	}
	w.accounts()
}

// endRun has the runners go no further than to the end of a turn, as at the end of Run.
func (w *world) endRun() {
	w.over, w.dropped = true, true
	w.await("the runners", func() bool {
		for _, t := range w.threads[:len(w.stations)] {
			if !t.ended {
				return false
			}
		}
		return true
	})
}

// close is the end of Run and of the Group.
func (w *world) close() {
	w.endRun()
	for _, x := range w.stations {
		_ = locals.Get(x.s).Close()
	}
	w.closed = true
}

// runAgain is the end of Run, which drops all that is left, and the next Run.
func (w *world) runAgain() {
	w.endRun()
	for _, x := range w.stations {
		locals.Get(x.s).Drop()
	}
	w.over = false
	for i, x := range w.stations {
		if err := w.sys.Setup(x.s); err != nil {
			panic(err)
		}
		w.thread(fmt.Sprintf("runner %d, again", i), func() { w.serve(x) })
	}
}

// settled looks at a world in which all runners wait.
func (w *world) settled() {
	for i, r := range w.sys.runners {
		switch {
		case r.queue.word.Peek() != 0:
			w.fail("runner %d rests, and all others do, while its queue has %d", i, r.queue.word.Peek()>>1)
		case r.next != nil:
			w.fail("runner %d rests, and has the next process in its hands", i)
		case r.inRun.Load() && r.idle.Peek() != 1:
			w.fail("runner %d rests, and nobody can wake it: it is not on the stack of the idle", i)
		case !r.inRun.Load() && r.idle.Peek() != 0:
			w.fail("runner %d has left Run, and is on the stack of the idle", i)
		}
	}
	alive, holding := 0, 0
	for _, p := range w.procs {
		alive += p.settled()
	}
	for _, r := range w.sys.runners {
		if r.keepsRun.Load() {
			holding++
		}
	}
	if ordered := w.sys.runners[0].ordered; !ordered && alive > 0 && holding == 0 {
		w.fail("%d processes are alive, and nobody holds Run", alive)
	} else if (alive == 0 || ordered) && holding > 0 {
		w.fail("%d processes are alive, an order is in force: %v, and %d runners hold Run", alive, ordered, holding)
	}
	if n := w.sys.Stats().Alive; int(n) != alive {
		w.fail("%d processes are alive, and the System counts %d", alive, n)
	}
	for _, q := range w.wishes {
		if !q.f.Resolved() && w.sys.pending.Load() == 0 {
			w.fail("nothing is ready any more, and nobody has said so")
		}
	}
	w.accounts()
}

// accounts looks whether every message was received, refused, or dropped and counted.
func (w *world) accounts() {
	sent, received, left := 0, 0, 0
	for _, p := range w.procs {
		sent += p.sent
		received += p.received
		left += p.left()
	}
	if dropped := int(w.sys.Stats().Dropped); sent != received+dropped+left+w.underway {
		w.fail("%d messages were sent, %d received, %d dropped, and %d lie there", sent, received, dropped, left)
	}
}

// story tells what has happened, one line a step, the latest last.
func (w *world) story() string {
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

// nameOf is the name of an address: what it belongs to, and where it is in that.
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
		return key{"what rings", 0, uintptr(at)} // it stays with its scheduler
	}
	return key{}
}

// field is the name for people.
func (w *world) field(k key) string {
	t := map[string]reflect.Type{"sys": reflect.TypeFor[System](), "runner": reflect.TypeFor[runner](), "registry": reflect.TypeFor[registry]()}[k.of]
	if t == nil || !w.telling {
		return cmp.Or(k.of, "something")
	}
	name := k.of
	if k.of != "sys" {
		name = fmt.Sprint(name, " ", k.index)
	}
	for i := range t.NumField() {
		if f := t.Field(i); k.offset-f.Offset < f.Type.Size() {
			name += "'s " + f.Name
		}
	}
	return name
}

func (g *ghost) show(v uint64) string {
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
