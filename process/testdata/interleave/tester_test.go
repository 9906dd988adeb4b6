package process

import (
	"fmt"
	"iter"
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
