package process

import (
	"regexp"
	"strings"
	"testing"
)

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
