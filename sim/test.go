package sim

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// worlds is how many worlds Test runs, unless the environment sets SIM_SEEDS.
const worlds = 50

// Test runs the scenario in 50 worlds with different seeds, and fails t with the first Failure. The scenario adds
// servers and clients to the world, and Test calls Run. Each world has about half of the faults of [Anything].
//
// The environment selects other worlds: SIM_SEEDS=n runs n of them, SIM_FROM=n starts at seed n, and SIM_SEED=n runs
// only the world of seed n and shows more of its history. SIM_WITHOUT=name,name switches kinds of faults off, by the names
// in which their counts are logged.
func Test(t testing.TB, scenario func(w *World)) {
	t.Helper()
	TestWith(t, Options{Faults: Anything()}, scenario)
}

// TestWith is [Test] with Options. Each world has about half of the Faults of o, and o.Seed is the first seed.
func TestWith(t testing.TB, o Options, scenario func(w *World)) {
	t.Helper()
	first, count := o.Seed, uint64(worlds)
	number(t, "SIM_FROM", &first)
	number(t, "SIM_SEEDS", &count)
	if number(t, "SIM_SEED", &first) {
		count, o.lines = 1, 2000
	}
	if count == 0 {
		t.Fatalf("SIM_SEEDS is 0, so there is no world to run")
	}
	begun, all := time.Now(), try(t, o, first, scenario)
	if try(t, o, first, scenario) != all {
		t.Fatalf("two runs of seed %d differ: the scenario or the server uses something that is not the world's, such as "+
			"the order of a map, select, time.Now, math/rand or a goroutine; %s", first, replay(t, first))
	}
	for i := uint64(1); i < count; i++ {
		all.add(try(t, o, first+i, scenario))
	}
	t.Logf("%d worlds in %v: %v", count, time.Since(begun).Round(time.Millisecond), all)
}

// try runs the world of one seed.
func try(t testing.TB, o Options, seed uint64, scenario func(w *World)) stats {
	t.Helper()
	returned := false
	defer func() {
		if !returned { // a panic, or the scenario has called t.Fatal
			t.Logf("seed %d; %s", seed, replay(t, seed))
		}
	}()
	o.Seed = seed
	d := newDice(seed, purposes)
	o.Faults = o.Faults.swarm(&d)
	w := New(o)
	scenario(w)
	err := w.Run()
	returned = true
	if err != nil {
		t.Fatalf("%v%s", err, replay(t, seed))
	}
	return w.soFar()
}

// replay says how to run the world of one seed again.
func replay(t testing.TB, seed uint64) string {
	exactly := strings.ReplaceAll("^"+regexp.QuoteMeta(t.Name())+"$", "/", "$/^")
	return fmt.Sprintf("to repeat this world, run in the directory of the test:\n  SIM_SEED=%d go test -run '%s' .", seed, exactly)
}

func (s *stats) add(o stats) {
	s.time += o.time
	s.turns += o.turns
	s.faults += o.faults
	for i, n := range o.bites {
		s.bites[i] += n
	}
	s.broken += o.broken
	s.events += o.events
	s.hash ^= o.hash
}

func (s stats) String() string {
	text := fmt.Sprintf("%v simulated, %d turns, %d events, hash %016x, %d faults:", s.time.Round(time.Millisecond), s.turns, s.events,
		s.hash, s.faults)
	for i, n := range s.bites {
		text += fmt.Sprintf("\n%8d %s", n, fault(i))
	}
	return text
}

// number reads a number from the environment, and reports whether it is set.
func number(t testing.TB, name string, to *uint64) bool {
	text := os.Getenv(name)
	if text == "" {
		return false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is not a number: %q", name, text)
	}
	*to = n
	return true
}
