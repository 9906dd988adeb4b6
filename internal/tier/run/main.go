// Command run runs the tests of a tier, and says in the end what it left out:
//
//	go run ./internal/tier/run quick
//	go run ./internal/tier/run full
//	go run ./internal/tier/run [-part 3/16] long
//
// It prints the line of each package as go test does, and the output of tests that fail. Its status is 1 if one does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	part := flag.String("part", "1/1", "of the tier long only the `k/n`th part")
	flag.Parse()
	start, r := time.Now(), &report{}
	tier := flag.Arg(0)
	os.Setenv("DAIMON_TESTS", tier)
	switch tier {
	case "quick":
		quick(r)
	case "full":
		install()
		full(r)
	case "long":
		install()
		long(r, *part)
	default:
		stop("usage: run quick | full | long")
	}
	r.print(tier)
	fmt.Printf("%s: %v\n", tier, time.Since(start).Round(time.Second))
	if r.failed() {
		os.Exit(1)
	}
}

// quick is go test ./... in the module of the library.
func quick(r *report) {
	r.test(step{dir: ".", args: []string{"./..."}})
	for _, dir := range modules()[1:] {
		r.leave("modules of their own (make test)", dir+" all")
	}
}

// full runs all tests with the race detector, two packages at a time, but for two groups. The end-to-end tests load
// the machine and look at what it does, so they run alone. And what measures runs last and without the detector, one
// package at a time.
func full(r *report) {
	for _, dir := range modules() {
		r.test(step{dir: dir, args: append([]string{"-count=1", "-race", "-p=2"}, packages(dir, "/e2e")...)})
	}
	r.test(step{dir: ".", args: []string{"-count=1", "-race", "-parallel=4", "./e2e"}})
	for _, m := range r.takeMeasured() {
		pattern := "^(" + strings.Join(m.tests, "|") + ")$"
		r.test(step{dir: m.dir, args: []string{"-count=1", "-p=1", "-parallel=4", "-run=" + pattern, m.pkg}})
	}
}

// long has a unit for each package, some for each package that takes long, and one for each fuzzer. Part k/n has
// every nth of them.
func long(r *report, part string) {
	var k, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 1 || k > n {
		stop("-part is k/n, with k from 1 to n: " + part)
	}
	others := 0
	for i, s := range units() {
		if i%n == k-1 {
			r.test(s)
		} else {
			others++
		}
	}
	if others > 0 {
		r.leave("other parts of the tier (make long)", fmt.Sprintf("all: %d of the steps", others))
	}
}

// mutantParts is how many units the mutants of package sim make: one takes about two minutes.
const mutantParts = 16

// units returns the steps of the long tier.
func units() (all []step) {
	for i := range mutantParts {
		all = append(all, step{dir: ".", args: []string{"-count=1", "-timeout=0", "-run=^TestMutants$", "./sim"},
			env: fmt.Sprintf("SIM_MUTANTS=%d/%d", i+1, mutantParts)})
	}
	for _, dir := range modules() {
		for _, pkg := range packages(dir, "/e2e") {
			all = append(all, step{dir: dir, args: []string{"-count=1", "-timeout=0", "-skip=^TestMutants$", pkg}})
			for _, name := range fuzzers(dir, pkg) {
				all = append(all, step{dir: dir, args: []string{"-run=^$", "-fuzz=^" + name + "$", "-fuzztime=30s", pkg}})
			}
		}
	}
	return append(all, step{dir: ".", args: []string{"-count=1", "-timeout=0", "./e2e"}})
}

// modules returns the directories of the modules that have tests, that of the library first.
func modules() []string {
	var all []string
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		found, _ := filepath.Glob(pattern) // the pattern is good
		for _, path := range found {
			if dir := filepath.Dir(path); dir != "tools" {
				all = append(all, dir)
			}
		}
	}
	slices.Sort(all)
	return append([]string{"."}, all...)
}

// packages returns the packages of a module that have tests, without the one whose path ends in without.
func packages(dir, without string) (all []string) {
	list := output(dir, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	for _, pkg := range strings.Fields(list) {
		if !strings.HasSuffix(pkg, without) {
			all = append(all, pkg)
		}
	}
	return all
}

// fuzzers returns the names of the fuzz tests of a package.
func fuzzers(dir, pkg string) (all []string) {
	for name := range strings.Lines(output(dir, "test", "-list", "^Fuzz", pkg)) {
		if strings.HasPrefix(name, "Fuzz") {
			all = append(all, strings.TrimSpace(name))
		}
	}
	return all
}

// stop ends the program with one sentence.
func stop(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(2)
}
