package process

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"unsafe"
)

// tester lets threads take steps, one at a time, as a chooser says. A thread is a coroutine; between two of its
// steps, where it would be preempted by a machine, another may be chosen. What is not a step happens with the one
// before it.
type tester struct {
	chooser
	threads []*thread
	now     *thread // whose step it is
	next    *thread // who has the next; nil: nobody can
	setUp   *thread // what is done before threads have begun

	chosen  bool // what happens is chosen; else it takes its straight course
	atomic  int  // more than 0: within something that counts for one step
	writes  int
	efforts int // writes that can be of use to a reactor that found everything locked
	history []event
	finding string

	name func(at unsafe.Pointer) string
}

// thread is one of those that are interleaved.
type thread struct {
	name   string
	resume func() (struct{}, bool)
	leave  func(struct{}) bool
	ended  bool

	ready func() bool // nil: it can go on
	waits string      // for what, if it is not ready

	writes  int // by itself
	efforts int
	seen    int // writes of others when it last waited for some
}

// event is what has happened, for people.
type event struct {
	by       *thread
	at       unsafe.Pointer
	was, now uint64
	wrote    bool
	note     string
}

// steps bounds those of a run. One that takes more does not come to an end.
const steps = 20_000

func newTester(c chooser) *tester {
	x := &tester{chooser: c, setUp: &thread{name: "set-up"}}
	x.now = x.setUp
	return x
}

// thread makes one that does f.
func (x *tester) thread(name string, f func()) *thread {
	t := &thread{name: name}
	t.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
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

// run goes on until nobody can, or something was found.
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

// fail notes what was found. It is the end of the run: the threads stay where they are.
func (x *tester) fail(format string, args ...any) {
	if x.finding == "" {
		x.finding = fmt.Sprintf(format, args...)
		x.note("%s", x.finding)
	}
	if t := x.now; t != x.setUp {
		for x.next = nil; ; {
			t.leave(struct{}{})
		}
	}
}

func (x *tester) note(format string, args ...any) {
	x.history = append(x.history, event{by: x.now, note: fmt.Sprintf(format, args...)})
}

// can tells whether t could take a step.
func (t *thread) can() bool { return !t.ended && (t.ready == nil || t.ready()) }

// others are those but t that can go on, beginning behind t.
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

// another chooses who goes on, now that t cannot. It is no preemption.
func (x *tester) another(t *thread) *thread {
	all := x.others(t)
	if t != nil && t.can() {
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil
	}
	if !x.chosen {
		return all[0]
	}
	return all[x.choose(len(all), false)]
}

// pick is a choice of the world, not of the threads: 0 to n-1.
func (x *tester) pick(n int) int {
	if !x.chosen {
		return 0
	}
	return x.choose(n, false)
}

// point is where another thread may go on.
func (x *tester) point() {
	t := x.now
	if t == x.setUp || x.atomic > 0 {
		return
	}
	if len(x.history) > steps {
		x.fail("no end: %d steps", steps)
	}
	if !x.chosen || !x.mayPreempt() {
		return
	}
	all := x.others(t)
	if len(all) == 0 {
		return
	}
	if i := x.choose(1+len(all), true); i > 0 {
		x.switchTo(all[i-1])
	}
}

func (x *tester) switchTo(t *thread) {
	me := x.now
	x.next = t
	me.leave(struct{}{})
}

// await has the present thread wait until ready says that it can go on. what is for people.
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

// Before is steps.Tester's.
func (x *tester) before() { x.point() }

func (x *tester) after(at unsafe.Pointer, was, now uint64, wrote, effort bool) {
	x.history = append(x.history, event{by: x.now, at: at, was: was, now: now, wrote: wrote})
	if wrote {
		x.writes++
		x.now.writes++
		if effort {
			x.efforts++
			x.now.efforts++
		}
	}
}

func (x *tester) writesOfOthers() int { return x.writes - x.now.writes }

// Await is called between two looks at something that is locked. The first time it is not known whether that has
// changed since.
func (x *tester) Await(looks int) {
	t := x.now
	if looks > 0 && t != x.setUp {
		x.await("a lock", func() bool { return x.writes-t.writes > t.seen })
	}
	t.seen = x.writesOfOthers()
}

// chooser says how the run goes on.
type chooser interface {
	// choose returns 0 to of-1. A choice between threads is one of preemption, or the thread cannot go on.
	choose(of int, preemption bool) int
	// mayPreempt tells whether a preemption would be chosen at all.
	mayPreempt() bool
	// String is what repeats the run.
	String() string
}

// course is a chooser that tries all courses with at most so many preemptions, run by run.
type course struct {
	bound int
	taken []branch
	at    int
	spent int
}

type branch struct {
	way, of    int
	preemption bool
}

func (x *course) mayPreempt() bool { return x.spent < x.bound }

func (x *course) choose(of int, preemption bool) int {
	if of == 1 {
		return 0
	}
	if x.at == len(x.taken) {
		x.taken = append(x.taken, branch{0, of, preemption})
	}
	b := x.taken[x.at]
	if b.of != of || b.preemption != preemption {
		panic(fmt.Sprintf("the same choices have led elsewhere: %d ways at choice %d, which had %d", of, x.at, b.of))
	}
	x.at++
	if preemption && b.way > 0 {
		x.spent++
	}
	return b.way
}

// again goes back to the last fork with a way that has not been tried, and reports false if there is none.
func (x *course) again() bool {
	x.at, x.spent = 0, 0
	for n := len(x.taken) - 1; n >= 0; n-- {
		if b := &x.taken[n]; b.way+1 < b.of {
			b.way++
			x.taken = x.taken[:n+1]
			return true
		}
	}
	return false
}

func (x *course) String() string {
	var s []string
	for i, b := range x.taken {
		if b.way > 0 {
			s = append(s, fmt.Sprintf("%d:%d", i, b.way))
		}
	}
	return strings.Join(s, ",")
}

// replay is a chooser that takes one course: that of which String of a course has told.
type replay struct {
	*course
	ways map[int]int
}

func newReplay(s string, bound int) (*replay, error) {
	x := &replay{&course{bound: bound}, map[int]int{}}
	for _, pair := range strings.Split(s, ",") {
		at, way, _ := strings.Cut(pair, ":")
		if at == "" {
			continue
		}
		i, err := strconv.Atoi(at)
		if err != nil {
			return nil, err
		}
		if x.ways[i], err = strconv.Atoi(way); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *replay) choose(of int, preemption bool) int {
	if of > 1 && x.at == len(x.taken) {
		x.taken = append(x.taken, branch{min(x.ways[x.at], of-1), of, preemption})
	}
	return x.course.choose(of, preemption)
}

// dice is a chooser that follows a seed.
type dice struct {
	seed uint64
	*rand.Rand
	often float64 // how likely a preemption is
}

func newDice(seed uint64) *dice {
	x := &dice{seed: seed, Rand: rand.New(rand.NewPCG(seed, 7))}
	x.often = []float64{0.5, 0.2, 0.05, 0.02}[x.IntN(4)]
	return x
}

func (x *dice) mayPreempt() bool { return x.Float64() < x.often }

func (x *dice) choose(of int, preemption bool) int {
	if preemption {
		return 1 + x.IntN(of-1)
	}
	return x.IntN(of)
}

func (x *dice) String() string { return strconv.FormatUint(x.seed, 10) }
