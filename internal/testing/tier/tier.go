// Package tier decides which tests run. There are three tiers, each with all that the one before has:
//
//   - Quick, the default: what "go test ./..." runs with nothing but Go installed.
//   - Full: Quick, and what takes longer or needs other programs. "make test" runs it.
//   - Long: Full with all mutants, all interleavings and long random runs. "make long" runs it, without the race detector.
//
// No test of them depends on how busy the machine is. What measures time, processor time or memory is a tier beside
// them: tests whose names begin with TestMeasure, which "make measure" runs one at a time.
//
// The environment variable DAIMON_TESTS names the tier: quick, full, long or measure.
package tier

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/race"
)

// Tier is a set of tests. Each tier includes the ones before it.
type Tier int

// The tiers, from the smallest to the largest.
const (
	Quick Tier = iota
	Full
	Long
)

// measure is the name of the tier that is none of these.
const measure = "measure"

// Current returns the tier that DAIMON_TESTS names: Full for measure. It panics if that is none.
func Current() Tier {
	switch name := os.Getenv("DAIMON_TESTS"); name {
	case "", "quick":
		return Quick
	case "full", measure:
		return Full
	case "long":
		return Long
	default:
		panic("DAIMON_TESTS is " + name + ", not quick, full, long or measure")
	}
}

// Need skips the test if the current tier is below at. The reason says what the test does that the lower tiers
// leave out.
func Need(t testing.TB, at Tier, reason string) {
	t.Helper()
	if Current() < at {
		t.Skipf("left out of this tier: %s (run it with make %s)", reason, [...]string{"quick", "test", "long"}[at])
	}
}

// NoRace skips the test if it has the race detector, which would change what it looks at. The tier full has the detector,
// and runs the tests that were skipped by NoRace once more without it.
func NoRace(t testing.TB, what string) {
	t.Helper()
	if race.Enabled {
		t.Skipf("not with the race detector: %s", what)
	}
}

// Measure skips the test outside of the tier measure. What is measured is a figure that a document promises. The test
// has no race detector, and nothing else runs meanwhile. In all tiers it fails a test whose name does not begin with
// TestMeasure, which make measure would not find.
func Measure(t testing.TB, what string) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestMeasure") {
		t.Fatalf("a test that measures is named TestMeasure…: make measure does not find %s", t.Name())
	}
	if os.Getenv("DAIMON_TESTS") != measure {
		t.Skipf("left out of this tier: %s (run it with make measure)", what)
	}
}

// Tool returns the path of a program that the test needs. Without the program the test is skipped in the Quick
// tier and fails in the others.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	switch {
	case err == nil:
	case Current() == Quick:
		t.Skipf("left out of this tier: %s is not installed (make test installs it)", name)
	default:
		t.Fatalf("%s is not installed: %v", name, err)
	}
	return path
}

// Find returns the path of a program. Besides PATH it looks where Debian keeps servers: PostgreSQL's programs, of which it
// returns the latest version, and programs in sbin.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, pattern := range []string{"/usr/lib/postgresql/[0-9][0-9]/bin/", "/usr/sbin/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 { // the pattern is good
			return found[len(found)-1], nil
		}
	}
	return "", err
}

// Choose returns the value for the current tier: how many rounds a test takes, for example.
func Choose[T any](quick, full, long T) T { return [...]T{quick, full, long}[Current()] }
