// Command run runs the tests of a tier, and says in the end what it left out:
//
//	go run ./internal/tier/run quick
//	go run ./internal/tier/run full
//	go run ./internal/tier/run [-part 3/16] long
//
// It prints the line of each package as go test does, and the output of tests that fail. Its status is 1 if one does.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// together is for tests that say that they may run in parallel: most of them mostly wait.
const together = "-parallel=4"

// lanes is how many packages are tested at a time: one more than there may be CPUs, since tests also wait.
const lanes = 3

// full runs all tests with the race detector, a few packages at a time: first those of the library, then the end-to-end tests
// beside the other modules. What cannot have the detector runs last; of that what measures one package at a time.
func full(r *report) {
	// A program with the race detector sleeps for a second at its end, unless told otherwise, which makes a minute of all
	// packages. It waits for races of goroutines that still run: in most packages goleak has found that none does.
	os.Setenv("GORACE", strings.TrimSpace("atexit_sleep_ms=100 "+os.Getenv("GORACE")))
	all := modules()
	raced := func(dir string, atATime int) step {
		args := []string{"-count=1", "-race", fmt.Sprint("-p=", atATime), "-vet=off", together} // .ci/run vets all of it
		for _, p := range packages(dir, "/e2e") {
			args = append(args, p.path)
		}
		return step{dir: dir, args: args}
	}
	r.test(raced(all[0], lanes))
	others := []step{{dir: ".", args: []string{"-count=1", "-race", "-vet=off", together, "./e2e"}}}
	for _, dir := range longestFirst(all[1:]) {
		others = append(others, raced(dir, 1))
	}
	r.testBeside(others)
	alone, plain := r.takePlain()
	r.testBeside(plain)
	for _, s := range alone {
		r.test(s)
	}
}

// testBeside runs steps, lanes at a time.
func (r *report) testBeside(all []step) {
	steps := make(chan step, len(all))
	for _, s := range all {
		steps <- s
	}
	close(steps)
	var running sync.WaitGroup
	for range lanes {
		running.Go(func() {
			for s := range steps {
				r.test(s)
			}
		})
	}
	running.Wait()
}

// longestFirst puts the modules that take longest first, so that the lanes end at about the same time.
func longestFirst(dirs []string) []string {
	longest := []string{"stage/postgres", "e2e/libraries", "stage/sqlite", "e2e/browser", "bench", "examples/nethttp", "examples/report"}
	slices.SortStableFunc(dirs, func(a, b string) int {
		place := func(dir string) uint { return uint(slices.Index(longest, dir)) } // others last
		return cmp.Compare(place(a), place(b))
	})
	return dirs
}

// long runs the units of the kth of n parts.
func long(r *report, part string) {
	var k, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 1 || k > n {
		stop("-part is k/n, with k from 1 to n: " + part)
	}
	all := units()
	mine := parts(all, n)[k-1]
	for _, u := range mine {
		r.test(u.step)
	}
	if others := len(all) - len(mine); others > 0 {
		r.leave("other parts of the tier (make long)", fmt.Sprintf("all: %d of the steps", others))
	}
}

// A unit is a step of the long tier, and about how many seconds it takes on two CPUs.
type unit struct {
	step
	seconds int
}

// parts deals the units out, the longest first, each to the part that takes least by then.
func parts(all []unit, n int) [][]unit {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b unit) int { return b.seconds - a.seconds })
	dealt, taken := make([][]unit, n), make([]int, n)
	for _, u := range all {
		i := slices.Index(taken, slices.Min(taken))
		dealt[i] = append(dealt[i], u)
		taken[i] += u.seconds
	}
	return dealt
}

// mutantParts is how many units the mutants of package sim make.
const mutantParts = 16

// heavy has the packages that take longer than a quarter of a minute: how long, and how many units they make.
var heavy = map[string]struct{ seconds, units int }{
	"act":            {60, 1},
	"e2e":            {216, 4},
	"httpd":          {140, 1},
	"process":        {130, 1},
	"secure":         {60, 1},
	"secure/worlds":  {40, 1},
	"sim":            {240, 3},
	"stage":          {60, 1},
	"stage/memory":   {90, 1},
	"stage/postgres": {250, 3},
	"stage/sqlite":   {80, 1},
}

const (
	mutantSeconds = 45 // of one of mutantParts
	fuzzSeconds   = 65 // half of them for compiling with what guides the fuzzer
	otherSeconds  = 10 // of a package
)

// units returns all of the long tier: parts of the mutants, packages or parts of them, and fuzzers.
func units() (all []unit) {
	for i := range mutantParts {
		all = append(all, unit{step{dir: ".", args: []string{"-count=1", "-timeout=0", "-run=^TestMutants$", "./sim"},
			env: fmt.Sprintf("SIM_MUTANTS=%d/%d", i+1, mutantParts)}, mutantSeconds})
	}
	for _, dir := range modules() {
		for _, p := range packages(dir, "") {
			all = append(all, p.units(dir)...)
		}
	}
	return all
}

// units returns what a package contributes.
func (p pkg) units(dir string) (all []unit) {
	h, ok := heavy[strings.TrimPrefix(p.path, module+"/")]
	if !ok {
		h.seconds, h.units = otherSeconds, 1
	}
	names := p.functions()
	for i := range h.units {
		args := []string{"-count=1", "-timeout=0", together}
		if h.units > 1 {
			var some []string
			for k := i; k < len(names); k += h.units {
				some = append(some, names[k])
			}
			args = append(args, "-run=^("+strings.Join(some, "|")+")$")
		}
		if p.path == module+"/sim" {
			args = append(args, "-skip=^TestMutants$")
		}
		all = append(all, unit{step{dir: dir, args: append(args, p.path)}, h.seconds / h.units})
	}
	for _, name := range names {
		if strings.HasPrefix(name, "Fuzz") {
			args := []string{"-run=^$", "-fuzz=^" + name + "$", "-fuzztime=30s", p.path}
			all = append(all, unit{step{dir: dir, args: args}, fuzzSeconds})
		}
	}
	return all
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

// A pkg is a package with tests.
type pkg struct {
	path  string
	files []string // with tests
}

// packages returns those of a module, without the one whose path ends in without if that is not empty.
func packages(dir, without string) (all []pkg) {
	list := json.NewDecoder(strings.NewReader(output(dir, "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "./...")))
	for {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		err := list.Decode(&p)
		if err == io.EOF {
			return all
		}
		if err != nil {
			stop(err.Error())
		}
		files := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		if len(files) == 0 || without != "" && strings.HasSuffix(p.ImportPath, without) {
			continue
		}
		for i, name := range files {
			files[i] = filepath.Join(p.Dir, name)
		}
		all = append(all, pkg{p.ImportPath, files})
	}
}

var function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// functions returns the names of the tests, fuzzers and examples. It reads the files: go test -list would compile them all,
// for most of a minute.
func (p pkg) functions() (names []string) {
	for _, path := range p.files {
		text, err := os.ReadFile(path)
		if err != nil {
			stop(err.Error())
		}
		for _, found := range function.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names
}

// stop ends the program with one sentence.
func stop(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(2)
}
