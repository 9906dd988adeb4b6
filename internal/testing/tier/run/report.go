package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

const module = "github.com/daimon-go/daimon"

// A report is what the calls of go test have shown so far.
type report struct {
	failures  []string
	left      []leftOut
	took      []took
	disturbed []string // packages, a space, and tests that were skipped because of the race detector
	rows      bool     // whether what tests log is printed
}

// leftOut is what was left out for one reason.
type leftOut struct {
	reason string
	names  []string // a package, a space, a test
}

// took is how long a test took.
type took struct {
	name    string // a package, a space, a test
	seconds float64
}

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func (e event) name() string {
	return strings.TrimSpace(strings.TrimPrefix(e.Package, module+"/") + " " + e.Test)
}

// test runs go test with these arguments, followed by these packages.
func (r *report) test(args string, packages ...string) {
	line := slices.Concat(strings.Fields(args), packages)
	fmt.Println("\n$ go test", shortened(strings.Join(line, " ")))
	start := time.Now()
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json"}, line)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop(err.Error())
	}
	failures, said := len(r.failures), map[string]*strings.Builder{}
	for in := bufio.NewReader(out); ; {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "build-output", Output: string(line)}
			}
			r.note(e, said)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil && len(r.failures) == failures {
		r.failures = append(r.failures, fmt.Sprintf("go test %s: %v", shortened(args), err))
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("%v, %v of processor time\n", time.Since(start).Round(time.Second), used.Round(time.Second))
}

var (
	packageLine = regexp.MustCompile(`^(ok|FAIL)\s`)
	row         = regexp.MustCompile(`^\s+\w+\.go:\d+: (.*, at most .*)`)
	needs       = regexp.MustCompile(`left out of this tier: (.*) \((?:run it with )?(make \w+)`)
	because     = regexp.MustCompile(`\.go:\d+: (.*)`)
)

// note takes one event. said has the output of each test that runs.
func (r *report) note(e event, said map[string]*strings.Builder) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if e.Test == "" && packageLine.MatchString(e.Output) {
			fmt.Print(e.Output)
			return
		}
		if found := row.FindStringSubmatch(e.Output); r.rows && found != nil {
			fmt.Printf("  %s: %s\n", e.name(), found[1])
		}
		if said[key] == nil {
			said[key] = &strings.Builder{}
		}
		said[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		text := said[key]
		delete(said, key)
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			r.took = append(r.took, took{e.name(), e.Elapsed})
		}
		if e.Action == "fail" {
			r.fail(e, text, said)
		} else if e.Action == "skip" && e.Test != "" && text != nil {
			r.skipped(e, text.String())
		}
	}
}

// fail notes a failure. A package fails with its tests, and a test with its subtests.
func (r *report) fail(e event, text *strings.Builder, said map[string]*strings.Builder) {
	if text != nil {
		fmt.Print(text)
	}
	if e.Test == "" { // what the tests have said that the end of the program has cut short
		for key, text := range said {
			if strings.HasPrefix(key, e.Package+" ") {
				fmt.Print(text)
			}
		}
	}
	below := e.name() + map[bool]string{true: " ", false: "/"}[e.Test == ""]
	if !slices.ContainsFunc(r.failures, func(f string) bool { return strings.HasPrefix(f, below) }) {
		r.failures = append(r.failures, e.name())
	}
}

// skipped notes why a test was skipped.
func (r *report) skipped(e event, said string) {
	if strings.Contains(said, ": not with the race detector: ") {
		test, _, _ := strings.Cut(e.Test, "/")
		r.disturbed = append(r.disturbed, e.Package+" "+test)
		return
	}
	reason := "skipped"
	if found := needs.FindStringSubmatch(said); found != nil {
		reason = found[1] + " (" + found[2] + ")"
	} else if found := because.FindStringSubmatch(said); found != nil {
		reason = found[1]
	}
	r.leave(reason, e.name())
}

// leave notes that a test of a package is left out.
func (r *report) leave(reason, name string) {
	for i := range r.left {
		if r.left[i].reason == reason {
			r.left[i].names = append(r.left[i].names, name)
			return
		}
	}
	r.left = append(r.left, leftOut{reason, []string{name}})
}

// takeDisturbed returns the packages of tests that were skipped because of the race detector, and the names of the tests.
func (r *report) takeDisturbed() (packages, tests []string) {
	for _, name := range r.disturbed {
		pkg, test, _ := strings.Cut(name, " ")
		packages, tests = append(packages, pkg), append(tests, test)
	}
	slices.Sort(packages)
	slices.Sort(tests)
	return slices.Compact(packages), slices.Compact(tests)
}

func (r *report) failed() bool { return len(r.failures) > 0 }

// print prints which tests took longest, what was left out, and what failed.
func (r *report) print(tier string) {
	slices.SortFunc(r.took, func(a, b took) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Println("\nThe slowest tests:")
	for _, t := range r.took[:min(10, len(r.took))] {
		fmt.Printf("  %6.2f s  %s\n", t.seconds, t.name)
	}
	if len(r.left) > 0 {
		fmt.Printf("\nLeft out of the tier %s:\n", tier)
	}
	for _, l := range r.left {
		l.print()
	}
	if r.failed() {
		fmt.Println("\nFailed:")
		for _, f := range r.failures {
			fmt.Println("  " + f)
		}
	}
	fmt.Println()
}

// few is how many tests of a package are named.
const few = 5

// print prints the names by package, on one line each, or how many they are.
func (l leftOut) print() {
	fmt.Printf("  %s:\n", l.reason)
	var packages []string
	tests := map[string][]string{}
	for _, name := range l.names {
		pkg, test, _ := strings.Cut(name, " ")
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		tests[pkg] = append(tests[pkg], test)
	}
	for _, pkg := range packages {
		if all := tests[pkg]; len(all) > few {
			fmt.Printf("    %s: %d tests\n", pkg, len(all))
		} else {
			fmt.Printf("    %s: %s\n", pkg, strings.Join(all, ", "))
		}
	}
}

// shortened leaves out the middle of a long line.
func shortened(line string) string {
	const most = 200
	if len(line) <= most {
		return line
	}
	return line[:most-20] + " … " + line[len(line)-17:]
}

// output returns what go prints with these arguments.
func output(args ...string) string {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		stop(fmt.Sprintf("%s: %v", cmd, err))
	}
	return strings.TrimSpace(string(out))
}
