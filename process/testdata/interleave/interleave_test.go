package process

import (
	"flag"
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
