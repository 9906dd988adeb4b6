package process

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

// What repeats a run, and how many there are.
var (
	schedule = flag.String("schedule", "", "the one schedule to try, as a failure has printed it")
	deeper   = flag.Int("deeper", 0, "preemptions more than the cases say")
	all      = flag.Bool("all", false, "also courses that do the same as others")
	seed     = flag.Uint64("seed", 0, "the one seed to try")
	fault    = flag.String("fault", "", "the fault to plant")
	seeds    = flag.Int("seeds", 0, "how many seeds to try")
)

// small is a case of which all courses are tried that have so few preemptions.
type small struct {
	name        string
	runners     int
	preemptions int
	cfg         Config
	bells       bool // others may come between the steps of a bell
	ordered     bool // there are orders, which a Group does not forget
	play        func(w *world)
}

// try takes one course, and returns what it has come to.
func (x *small) try(c chooser, all stations, telling bool) *world {
	w := newWorld(c, all, x.cfg)
	w.bells, w.fresh, w.telling = x.bells, x.ordered, telling
	x.play(w)
	if w.finding == "" {
		w.rest(true)
	}
	w.end()
	return w
}

// explore tries all courses, until something is found, which is then told.
func (x *small) explore() (found *world, courses int) {
	stations := newStations(x.runners)
	c := newCourse(x.preemptions + *deeper)
	c.all = *all
	for more := true; more; more = c.again() {
		if x.ordered {
			stations = newStations(x.runners)
		}
		courses++
		if w := x.try(c, stations, false); w.finding != "" {
			c.rewind()
			return x.try(c, newStations(x.runners), true), courses
		}
	}
	return nil, courses
}

// report is what somebody needs who is to find out why.
func (w *world) report(how string) string {
	return fmt.Sprintf("%s\n%s\nto repeat it: %s", w.finding, w.story(), how)
}

func TestInterleave(t *testing.T) {
	planted = *fault
	for i := range cases {
		x := &cases[i]
		t.Run(x.name, func(t *testing.T) {
			if *schedule != "" {
				c, err := newReplay(*schedule, x.preemptions+*deeper)
				if err != nil {
					t.Fatal(err)
				}
				t.Log(x.try(c, newStations(x.runners), true).report(""))
				return
			}
			begun := time.Now()
			found, n := x.explore()
			if found != nil {
				t.Fatal(found.report("-schedule=" + found.String()))
			}
			t.Logf("%d courses in %v", n, time.Since(begun).Round(time.Millisecond))
		})
	}
}

func TestInterleaveRandomly(t *testing.T) {
	planted = *fault
	all := newTheatre()
	if *seed != 0 {
		t.Log(tryRandom(*seed, all, true).report(""))
		return
	}
	for s := range uint64(*seeds) {
		if w := tryRandom(s+1, all, false); w.finding != "" {
			t.Fatal(tryRandom(s+1, newTheatre(), true).report(fmt.Sprintf("-seed=%d", s+1)))
		}
	}
}
