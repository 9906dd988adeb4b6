package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A step is one call of go test.
type step struct {
	dir  string // of the module
	args []string
	env  string // one more variable, or empty
}

func (s step) String() string {
	line := "go test"
	if s.dir != "." {
		line += " -C " + s.dir
	}
	return strings.TrimSpace(s.env + " " + line + " " + strings.Join(s.args, " "))
}

// A report is what the steps have shown so far. Steps may run at the same time.
type report struct {
	mu       sync.Mutex
	failures []string
	left     []leftOut
	plain    []plain
}

// leftOut is what was left out for one reason.
type leftOut struct {
	reason string
	names  []string // a package, a space, a test
}

// plain are tests of a package that were skipped because of the race detector.
type plain struct {
	dir, pkg string
	alone    bool // they measure
	tests    []string
}

func (p plain) step() step {
	pattern := "^(" + strings.Join(p.tests, "|") + ")$"
	return step{dir: p.dir, args: []string{"-count=1", "-p=1", "-vet=off", together, "-run=" + pattern, p.pkg}}
}

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// test runs a step. It prints the lines of packages, and the output of tests that fail.
func (r *report) test(s step) {
	fmt.Println("\n$", shortened(s.String()))
	start := time.Now()
	cmd := exec.Command("go", slices.Concat([]string{"test", "-C", s.dir, "-json"}, s.args)...)
	cmd.Stderr = os.Stderr
	if s.env != "" {
		cmd.Env = append(os.Environ(), s.env)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop(err.Error())
	}
	failed, said := false, map[string]*strings.Builder{}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "build-output", Output: string(line)}
			}
			failed = failed || e.Action == "fail"
			r.mu.Lock()
			r.note(s.dir, e, said)
			r.mu.Unlock()
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !failed {
		r.failures = append(r.failures, fmt.Sprintf("%s: %v", s, err))
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("%s: %v, %v of processor time\n", s.dir, time.Since(start).Round(time.Second), used.Round(time.Second))
}

// note takes one event. said has the output of each test that runs.
func (r *report) note(dir string, e event, said map[string]*strings.Builder) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if e.Test == "" {
			if packageLine.MatchString(e.Output) {
				fmt.Print(e.Output)
				return
			}
			key = e.Package + " "
		}
		if said[key] == nil {
			said[key] = &strings.Builder{}
		}
		said[key].WriteString(e.Output)
	case "pass":
		delete(said, key)
	case "fail":
		if text := said[key]; text != nil {
			fmt.Print(text)
		}
		delete(said, key)
		// A package fails with its tests, and a test with its subtests.
		below := key
		if e.Test != "" {
			below += "/"
		}
		known := func(f string) bool { return strings.HasPrefix(f, below) }
		if !slices.ContainsFunc(r.failures, known) {
			r.failures = append(r.failures, strings.TrimSpace(key))
		}
	case "skip":
		if text := said[key]; text != nil {
			r.skipped(dir, e, text.String())
		}
		delete(said, key)
	}
}

var (
	packageLine = regexp.MustCompile(`^(ok|FAIL)\s`)
	needs       = regexp.MustCompile(`left out of this tier: (.*) \((?:run it with )?(make \w+)`)
	noRace      = regexp.MustCompile(`: not with the race detector(, and alone)?: `)
	because     = regexp.MustCompile(`_test\.go:\d+: (.*)`)
)

// skipped notes why a test was skipped. A package without tests is skipped as well.
func (r *report) skipped(dir string, e event, said string) {
	if e.Test == "" {
		return
	}
	name := strings.TrimPrefix(e.Package, module+"/") + " " + e.Test
	switch {
	case noRace.MatchString(said):
		test, _, _ := strings.Cut(e.Test, "/")
		alone := noRace.FindStringSubmatch(said)[1] != ""
		i := slices.IndexFunc(r.plain, func(p plain) bool { return p.pkg == e.Package && p.alone == alone })
		if i < 0 {
			i = len(r.plain)
			r.plain = append(r.plain, plain{dir: dir, pkg: e.Package, alone: alone})
		}
		if !slices.Contains(r.plain[i].tests, test) {
			r.plain[i].tests = append(r.plain[i].tests, test)
		}
	case needs.MatchString(said):
		found := needs.FindStringSubmatch(said)
		r.leave(found[1]+" ("+found[2]+")", name)
	default:
		reason := "skipped"
		if found := because.FindStringSubmatch(said); found != nil {
			reason = found[1]
		}
		r.leave(reason, name)
	}
}

const module = "github.com/daimon-go/daimon"

// takePlain returns the tests that were skipped because of the race detector: those that measure, and the others.
func (r *report) takePlain() (alone, others []step) {
	for _, p := range r.plain {
		if p.alone {
			alone = append(alone, p.step())
		} else {
			others = append(others, p.step())
		}
	}
	r.plain = nil
	return alone, others
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

func (r *report) failed() bool { return len(r.failures) > 0 }

// print prints what was left out, and what failed.
func (r *report) print(tier string) {
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

// output runs go with these arguments in a module, and returns what it prints.
func output(dir string, args ...string) string {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		stop(fmt.Sprintf("%s: %v", cmd, err))
	}
	return string(out)
}
