package process

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// tester runs threads step by step, as a chooser says. A thread is a coroutine. Between two of its steps another thread
// may be chosen, as if it was preempted. Code between two steps belongs to the first of them.
type tester struct {
	chooser
	threads []*thread
	now     *thread // the thread whose step it is
	next    *thread // the thread with the next step; nil: none can continue
	setUp   *thread // runs before the threads begin

	chosen    bool // choices are made; else the first is always taken
	atomic    int  // more than 0: inside of what counts as one step
	writes    int
	progress  int     // see after
	taken     int     // steps
	history   []event // the events since choices are made, if recording is set
	recording bool
	finding   string
}

// thread is one of the interleaved threads.
type thread struct {
	name   string
	number int
	resume func() (struct{}, bool)
	stop   func() // for a thread that has not begun
	leave  func(struct{}) bool
	ended  bool
	busy   bool // in the turn of a runner
	waking []*shadow

	ready func() bool // nil: it can continue
	waits string      // what it waits for, if it is not ready

	writes   int // its own
	progress int
	seen     int // writes of others when it last found a lock locked
}

// event is a step or a note in a trace.
type event struct {
	by       *thread
	at       *shadow
	was, now uint64
	wrote    bool
	note     string
}

// mostSteps bounds the steps of a run. A run that takes more does not end.
const mostSteps = 20_000

func newTester(c chooser) *tester {
	x := &tester{chooser: c, setUp: &thread{name: "set-up"}}
	x.now = x.setUp
	return x
}

// thread adds a thread that calls f.
func (x *tester) thread(name string, f func()) *thread {
	t := &thread{name: name, number: len(x.threads)}
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.leave = yield
		defer func() {
			if v := recover(); v != nil {
				x.fail("%s panics: %v", t.name, v)
			}
		}()
		f()
	})
	x.threads = append(x.threads, t)
	return t
}

// run runs until no thread can continue, or something was found.
func (x *tester) run(chosen bool) {
	x.chosen = chosen
	x.now = x.setUp
	x.next = x.another(nil)
	for x.next != nil && x.finding == "" {
		t := x.next
		x.now = t
		if _, more := t.resume(); !more {
			t.ended = true
			x.next = x.another(t)
		}
	}
	x.now, x.chosen = x.setUp, false
}

// fail records what was found. It ends the run, and leaves the threads where they are.
func (x *tester) fail(format string, args ...any) {
	if x.finding == "" {
		x.finding = fmt.Sprintf(format, args...)
	}
	if t := x.now; t != x.setUp {
		for x.next = nil; ; {
			t.leave(struct{}{})
		}
	}
}

func (x *tester) note(format string, args ...any) {
	if x.recording && x.chosen {
		x.history = append(x.history, event{by: x.now, note: fmt.Sprintf(format, args...)})
	}
}

// can reports whether t can take a step.
func (t *thread) can() bool { return !t.ended && (t.ready == nil || t.ready()) }

// idles reports whether t is a runner's thread that waits to be woken.
func (t *thread) idles() bool { return t.ready != nil && t.waits == forWakeUp }

// forWakeUp is what an idle runner waits for: the only thing that may never come.
const forWakeUp = "a wake-up"

// others returns the threads but t that can continue, from the one after t on.
func (x *tester) others(t *thread) (all []*thread) {
	at := 0
	for i, other := range x.threads {
		if other == t {
			at = i + 1
		}
	}
	for i := range x.threads {
		if other := x.threads[(at+i)%len(x.threads)]; other != t && other.can() {
			all = append(all, other)
		}
	}
	return all
}

// another chooses the next thread when t cannot continue. It does not count as a preemption.
func (x *tester) another(t *thread) *thread {
	all := x.others(t)
	if t != nil && t.can() {
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil
	}
	if !x.chosen || len(all) == 1 {
		return all[0]
	}
	f := fork{from: -1, to: all}
	if t != nil {
		f.from = t.number
	}
	return all[x.choose(f)]
}

// pick makes a choice of the world: 0 to n-1.
func (x *tester) pick(n int) int {
	if !x.chosen {
		return 0
	}
	return x.choose(fork{from: -1, to: make([]*thread, n)})
}

// point is a place where another thread may be chosen.
func (x *tester) point() {
	t := x.now
	if t == x.setUp || x.atomic > 0 {
		return
	}
	if x.taken++; x.taken > mostSteps {
		x.fail("no end: %d steps", mostSteps)
	}
	if !x.chosen || !x.mayPreempt() {
		return
	}
	all := x.others(t)
	if len(all) == 0 {
		return
	}
	all = append([]*thread{t}, all...)
	if i := x.choose(fork{t.number, all, true}); i > 0 {
		x.switchTo(all[i])
	}
}

func (x *tester) switchTo(t *thread) {
	me := x.now
	x.next = t
	me.leave(struct{}{})
}

// await makes the current thread wait until ready returns true. what is for traces.
func (x *tester) await(what string, ready func() bool) {
	t := x.now
	if t == x.setUp {
		x.fail("set-up waits for %s", what)
		return
	}
	t.ready, t.waits = ready, what
	if next := x.another(t); next != t {
		x.switchTo(next)
	}
	t.ready = nil
}

// after records a step. Progress is a write that a runner which has found everything locked may have waited for.
func (x *tester) after(g *shadow, was, now uint64, wrote, isProgress bool) {
	t := x.now
	if x.recording && x.chosen {
		x.history = append(x.history, event{by: t, at: g, was: was, now: now, wrote: wrote})
	}
	x.step(t.number, g.id, wrote)
	if wrote {
		x.writes++
		t.writes++
		if isProgress {
			x.progress++
			t.progress++
		}
	}
}

func (x *tester) writesOfOthers() int { return x.writes - x.now.writes }

// Looked implements steps.Tester.
func (x *tester) Looked() { x.now.seen = x.writesOfOthers() }

// Await implements steps.Tester.
func (x *tester) Await() {
	if t := x.now; t != x.setUp {
		x.await("a lock", func() bool { return x.writes-t.writes > t.seen })
	}
}

// chooser decides how a run continues.
type chooser interface {
	// choose returns the index of one of fork.to.
	choose(f fork) int
	// mayPreempt reports whether a preemption would be chosen at all.
	mayPreempt() bool
	// step reports a step: its thread, the number of its address, and whether it has written.
	step(by, at int, wrote bool)
	// numberOf returns a number for a key, the same in all runs; 0 if it has none.
	numberOf(k key) int
}

// fork is a choice between threads, or of the world.
type fork struct {
	from       int // the thread at the fork; -1: none, or this is not a choice between threads
	to         []*thread
	preemption bool // the first of to is the thread at the fork, and could continue
}

// key names an address.
type key struct {
	of     string
	index  int
	offset uintptr
}

// search is a chooser that tries, run by run, all schedules with a bounded number of preemptions. It skips a schedule
// that has the same effect as another.
//
// A thread can be preempted before a step or, as another schedule, after it. If what the other threads do until it
// continues has no conflict with the step, the two schedules have the same effect.
type search struct {
	bound int
	taken []*branch
	at    int
	spent int

	stepping *branch    // the fork whose thread takes its step
	waiting  []*episode // the episodes that have not ended
	keys     map[key]int
}

// branch is a fork, and what was tried there.
type branch struct {
	fork
	way      int
	step     accesses   // of the thread, if it continues here
	episodes []*episode // one for each way
	next     *branch    // the fork after step, if that way was tried
}

// episode is what other threads have accessed, in all runs, from a fork until its thread continued.
type episode struct {
	of int
	accesses
}

// accesses are the addresses that were read and written.
type accesses struct {
	read, written [4]uint64
	anything      bool
}

func (x *accesses) add(at int, wrote bool) {
	switch {
	case at == 0 || at >= 256:
		x.anything = true
	case wrote:
		x.written[at/64] |= 1 << (at % 64)
	default:
		x.read[at/64] |= 1 << (at % 64)
	}
}

func (x *accesses) conflicts(y *accesses) bool {
	if x.anything || y.anything {
		return true
	}
	for i := range x.read {
		if x.written[i]&(y.read[i]|y.written[i])|x.read[i]&y.written[i] != 0 {
			return true
		}
	}
	return false
}

func newSearch(bound int) *search { return &search{bound: bound, keys: map[key]int{}} }

func (x *search) mayPreempt() bool { return x.spent < x.bound }

func (x *search) numberOf(k key) int {
	if k.of == "" {
		return 0
	}
	n, ok := x.keys[k]
	if !ok {
		n = len(x.keys) + 1
		x.keys[k] = n
	}
	return n
}

func (x *search) step(by, at int, wrote bool) {
	if b := x.stepping; b != nil && b.from == by {
		b.step.add(at, wrote)
	}
	for i := 0; i < len(x.waiting); i++ {
		if e := x.waiting[i]; e.of != by {
			e.add(at, wrote)
		} else {
			x.waiting = append(x.waiting[:i], x.waiting[i+1:]...)
			i--
		}
	}
}

func (x *search) choose(f fork) int {
	if x.at == len(x.taken) {
		x.taken = append(x.taken, &branch{fork: f, episodes: make([]*episode, len(f.to))})
	}
	b := x.taken[x.at]
	if len(b.to) != len(f.to) || b.preemption != f.preemption || b.from != f.from {
		panic(fmt.Sprintf("the same choices gave %d ways at choice %d, which had %d", len(f.to), x.at, len(b.to)))
	}
	b.to = f.to
	x.at++
	x.stepping = nil
	switch {
	case b.preemption && b.way == 0:
		x.stepping = b
	case b.from >= 0:
		if b.episodes[b.way] == nil {
			b.episodes[b.way] = &episode{of: b.from}
		}
		x.waiting = append(x.waiting, b.episodes[b.way])
	}
	if b.preemption && b.way > 0 {
		x.spent++
	}
	return b.way
}

// rewind goes back to the first fork.
func (x *search) rewind() { x.at, x.spent, x.stepping, x.waiting = 0, 0, nil, nil }

// again goes back to the last fork with a way to try, and reports false if there is none.
func (x *search) again() bool {
	x.rewind()
	for n := len(x.taken) - 1; n >= 0; n-- {
		b := x.taken[n]
		for b.way+1 < len(b.to) {
			if b.way++; !b.redundant() {
				x.taken = x.taken[:n+1]
				return true
			}
		}
		if n == 0 {
			break
		}
		if before := x.taken[n-1]; before.preemption && before.way == 0 && before.from == b.from {
			before.next = b
		}
	}
	return false
}

// redundant reports whether the current way has the same effect as one that was tried.
func (b *branch) redundant() bool {
	if b.next == nil {
		return false
	}
	for i, t := range b.next.to {
		if e := b.next.episodes[i]; t.number == b.to[b.way].number && e != nil && !e.conflicts(&b.step) {
			b.episodes[b.way] = e
			return true
		}
	}
	return false
}

// randomChooser is a chooser that follows a seed.
type randomChooser struct {
	*rand.Rand
	often float64 // the probability of a preemption
}

func newRandomChooser(seed uint64) *randomChooser {
	x := &randomChooser{Rand: rand.New(rand.NewPCG(seed, 7))}
	x.often = []float64{0.5, 0.2, 0.05, 0.02}[x.IntN(4)]
	return x
}

func (x *randomChooser) mayPreempt() bool { return x.Float64() < x.often }

func (x *randomChooser) choose(f fork) int {
	if f.preemption {
		return 1 + x.IntN(len(f.to)-1)
	}
	return x.IntN(len(f.to))
}

func (x *randomChooser) step(int, int, bool) {}
func (x *randomChooser) numberOf(key) int    { return 0 }
