package process

import (
	"fmt"
	"iter"
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
	efforts int     // see after
	taken   int     // steps
	history []event // from where it is chosen, if somebody wants to know
	telling bool
	finding string
}

// thread is one of those that are interleaved.
type thread struct {
	name   string
	number int
	resume func() (struct{}, bool)
	stop   func() // for one that has not begun
	leave  func(struct{}) bool
	ended  bool
	busy   bool // in the turn of a runner
	brings []*ghost

	ready func() bool // nil: it can go on
	waits string      // for what, if it is not ready

	writes  int // by itself
	efforts int
	seen    int // writes of others when it last found something locked
}

// event is what has happened, for people.
type event struct {
	by       *thread
	at       *ghost
	was, now uint64
	wrote    bool
	note     string
}

// mostSteps bounds those of a run. One that takes more does not come to an end.
const mostSteps = 20_000

func newTester(c chooser) *tester {
	x := &tester{chooser: c, setUp: &thread{name: "set-up"}}
	x.now = x.setUp
	return x
}

// thread makes one that does f.
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
	}
	if t := x.now; t != x.setUp {
		for x.next = nil; ; {
			t.leave(struct{}{})
		}
	}
}

func (x *tester) note(format string, args ...any) {
	if x.telling && x.chosen {
		x.history = append(x.history, event{by: x.now, note: fmt.Sprintf(format, args...)})
	}
}

// can reports whether t could take a step.
func (t *thread) can() bool { return !t.ended && (t.ready == nil || t.ready()) }

// rests reports whether t is a runner's that waits to be woken.
func (t *thread) rests() bool { return t.ready != nil && t.waits == forWakeUp }

// forWakeUp is what a runner waits for when it has nothing to do: the one thing that may never come.
const forWakeUp = "a wake-up"

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
	if !x.chosen || len(all) == 1 {
		return all[0]
	}
	f := fork{from: -1, to: all}
	if t != nil {
		f.from = t.number
	}
	return all[x.choose(f)]
}

// pick is a choice of the world, not of the threads: 0 to n-1.
func (x *tester) pick(n int) int {
	if !x.chosen {
		return 0
	}
	return x.choose(fork{from: -1, to: make([]*thread, n)})
}

// point is where another thread may go on.
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

// await has the isSetUp thread wait until ready says that it can go on. what is for people.
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

// after notes a step. An effort is a write that a runner which has found everything locked may have waited for.
func (x *tester) after(g *ghost, was, now uint64, wrote, effort bool) {
	t := x.now
	if x.telling && x.chosen {
		x.history = append(x.history, event{by: t, at: g, was: was, now: now, wrote: wrote})
	}
	x.step(t.number, g.id, wrote)
	if wrote {
		x.writes++
		t.writes++
		if effort {
			x.efforts++
			t.efforts++
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
