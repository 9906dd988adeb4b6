package process

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFaults looks whether the tester finds what it is there to find. Each fault is planted in the code already, and
// done instead of what is right while its name is in planted.
func TestFaults(t *testing.T) {
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			planted = x.name
			defer func() { planted = "" }()
			begun := time.Now()
			for _, name := range strings.Split(x.cases, "; ") {
				finding, runs, repeat := hunt(t, name)
				if finding == "" {
					t.Errorf("not found by %q, in %d runs", name, runs)
				} else if !regexp.MustCompile(x.finding).MatchString(finding) {
					t.Errorf("%q has found something else, %s: %s", name, repeat, finding)
				} else {
					t.Logf("found by run %d of %q, %s, in %v: %s", runs, name, repeat, time.Since(begun).Round(time.Millisecond), finding)
				}
			}
		})
	}
}

// mostHunted are the random worlds in which a fault has to be found.
const mostHunted = 3000

// hunt tries a case, or random worlds, until something is found.
func hunt(t *testing.T, name string) (finding string, runs int, repeat string) {
	if name == "random" {
		all := newTheatre()
		for s := range uint64(mostHunted) {
			if w := tryRandom(s+1, all, false); w.finding != "" {
				return w.finding, int(s + 1), w.String()
			}
		}
		return "", mostHunted, ""
	}
	for i := range cases {
		if x := &cases[i]; x.name == name {
			if w, n := x.explore(); w != nil {
				return w.finding, n, w.String()
			} else {
				return "", n, ""
			}
		}
	}
	t.Fatalf("there is no case %q", name)
	return
}
