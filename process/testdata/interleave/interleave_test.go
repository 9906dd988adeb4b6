package process

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	deeper = flag.Int("deeper", 0, "preemptions more than the cases say")
	seed   = flag.Uint64("seed", 0, "the one seed to try")
	seeds  = flag.Int("seeds", 0, "how many seeds to try")
)

// small is a case that is tried with all schedules of so few preemptions.
type small struct {
	name string
	shape
	play func(w *world)
}

type shape struct {
	runners     int
	preemptions int
	ordered     bool // the case has orders, which a Group does not forget
	messages    int  // 0: the bounds of New
	batch       int
}

// try runs one schedule, and returns the world with what was found.
func (x *small) try(c chooser, all loops, recording bool) *world {
	w := newWorld(c, all, x.messages, x.batch)
	w.fresh, w.recording = x.ordered, recording
	x.play(w)
	if w.finding == "" {
		w.runUntilIdle(true)
	}
	w.end()
	return w
}

// explore tries all schedules until something is found, and repeats that with a recording.
func (x *small) explore() (found *world, courses int) {
	loops := newLoops(x.runners)
	c := newSearch(x.preemptions + *deeper)
	for more := true; more; more = c.again() {
		if x.ordered {
			loops = newLoops(x.runners)
		}
		courses++
		if w := x.try(c, loops, false); w.finding != "" {
			c.rewind()
			return x.try(c, newLoops(x.runners), true), courses
		}
	}
	return nil, courses
}

func TestInterleave(t *testing.T) {
	for i := range cases {
		x := &cases[i]
		t.Run(x.name, func(t *testing.T) {
			begun := time.Now()
			found, n := x.explore()
			if found != nil {
				t.Fatalf("%s\n%s", found.finding, found.trace())
			}
			t.Logf("%d courses in %v", n, time.Since(begun).Round(time.Millisecond))
		})
	}
}

func TestInterleaveRandomly(t *testing.T) {
	all := newLoopSets()
	if *seed != 0 {
		w := tryRandom(*seed, all, true)
		t.Logf("%s\n%s", w.finding, w.trace())
		return
	}
	for s := range uint64(*seeds) {
		if w := tryRandom(s+1, all, false); w.finding != "" {
			w = tryRandom(s+1, newLoopSets(), true)
			t.Fatalf("%s\n%s\nto repeat it: -seed=%d", w.finding, w.trace(), s+1)
		}
	}
}

// TestFaults checks that the tester finds each fault. All faults are compiled into the code; planted names the one that
// is in effect.
func TestFaults(t *testing.T) {
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			planted = x.name
			defer func() { planted = "" }()
			for _, name := range strings.Split(x.cases, "; ") {
				finding, runs := findFault(t, name)
				if finding == "" {
					t.Errorf("not found by %q, in %d runs", name, runs)
				} else if !regexp.MustCompile(x.finding).MatchString(finding) {
					t.Errorf("%q has found something else: %s", name, finding)
				} else {
					t.Logf("found by run %d of %q: %s", runs, name, finding)
				}
			}
		})
	}
}

// mostSeeds bounds the random worlds in which a fault has to be found.
const mostSeeds = 3000

// findFault tries a case, or random worlds, until something is found.
func findFault(t *testing.T, name string) (finding string, runs int) {
	if name == "random" {
		all := newLoopSets()
		for s := range uint64(mostSeeds) {
			if w := tryRandom(s+1, all, false); w.finding != "" {
				return w.finding, int(s + 1)
			}
		}
		return "", mostSeeds
	}
	for i := range cases {
		if x := &cases[i]; x.name == name {
			if w, n := x.explore(); w != nil {
				return w.finding, n
			} else {
				return "", n
			}
		}
	}
	t.Fatalf("there is no case %q", name)
	return
}

// Random worlds are larger than the cases. They have one to three runners, processes with all kinds of mailboxes that
// send, spawn, end and kill, and goroutines and tasks that do the same. One seed has one history.
//
// A process sends only to younger processes, or to mailboxes that never block, so that no cycle of processes waits for
// room.

// Bounds of a random world.
const (
	mostProcs = 5 // initially
	mostDepth = 4 // the longest chain of messages that cause others
	mostDone  = 4 // actions of a goroutine or a task
)

// onPurpose is the value of deliberate panics.
const onPurpose = "on purpose"

// loopSets are the loops for one to three runners.
type loopSets [3]loops

func newLoopSets() loopSets { return loopSets{newLoops(1), newLoops(2), newLoops(3)} }

// tryRandom runs one random world.
func tryRandom(seed uint64, all loopSets, recording bool) *world {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := newWorld(newRandomChooser(seed), all[rng.IntN(3)], 1+rng.IntN(3), 1+rng.IntN(5))
	w.bells, w.recording = rng.IntN(4) == 0, recording
	for range 1 + rng.IntN(mostProcs) {
		w.random(w.sys, rng)
	}
	if rng.IntN(2) == 0 && !w.runUntilIdle(false) {
		w.end()
		return w
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("goroutine %d", i)
		w.thread(name, func() {
			for range 1 + w.pick(mostDone) {
				w.anything(w.sys, name, nil, w.pick(mostDepth))
			}
		})
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("task %d", i)
		w.task(rng.IntN(len(w.loops)), func(from Sender) {
			for range 1 + w.pick(mostDone) {
				w.anything(from, name, nil, w.pick(mostDepth))
			}
		})
	}
	w.runUntilIdle(true)
	w.end()
	return w
}

// random spawns a process with random options.
func (w *world) random(from Sender, rng interface{ IntN(int) int }) {
	name := fmt.Sprintf("p%d", w.named)
	w.named++
	o := Options{Limit: []int{-1, 1, 2}[rng.IntN(3)], Reject: rng.IntN(2) == 0}
	x := &proc{w: w, name: name, heard: map[string]int{}, numbers: map[string]int{}}
	x.lazy = rng.IntN(4) == 0
	x.bounded = o.Limit != -1 && !o.Reject
	depth := rng.IntN(mostDepth)
	x.first = func(p *Self[msg]) { w.anything(p, name, x, depth) }
	x.ref = Spawn(from, x, o)
	w.trackNew()
	w.known = append(w.known, x)
}

// picks are the choices of a world, as random numbers.
type picks struct{ *world }

func (x picks) IntN(n int) int { return x.pick(n) }

// anything does one random thing for a goroutine, a task, or a process in its turn.
func (w *world) anything(from Sender, name string, me *proc, depth int) {
	to := w.known[w.pick(len(w.known))]
	defer w.returned()
	switch w.pick(12) {
	default:
		if depth > 0 {
			w.sendAnything(from, name, me, to, depth-1)
		}
	case 5:
		if depth > 0 && w.named < 3*mostProcs {
			w.random(from, picks{w})
		}
	case 6:
		if w.pick(2) == 0 {
			to.ref.Kill()
		}
	case 7:
		to.ref.p.Poke()
	case 8:
		if p, ok := from.(*Self[msg]); ok {
			switch w.pick(4) {
			case 0:
				p.Exit()
			case 1:
				panic(onPurpose)
			}
		}
	case 9:
		if me == nil && from == Sender(w.sys) {
			w.ask()
		}
	case 10:
		w.sys.runners[w.pick(len(w.loops))].wake()
	case 11:
		other := w.known[w.pick(len(w.known))]
		Link(to.ref, other.ref, w.pick(2) == 1)
	}
}

func (w *world) sendAnything(from Sender, name string, me, to *proc, depth int) {
	if me != nil && to.bounded && to != me && to.core.id <= me.core.id {
		return
	}
	do := func(p *Self[msg]) {
		for range w.pick(3) {
			w.anything(p, to.name, to, depth)
		}
	}
	b, ok := w.send(from, name, to, do).(*blockedSend)
	if ok && from == Sender(w.sys) {
		var heard signal
		if b.join(&heard) != nil {
			w.await("room", func() bool { return heard > 0 })
		}
	}
}
