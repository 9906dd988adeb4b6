// Command run runs the tests of a tier, and says in the end which took longest and what the tier left out:
//
//	go run ./internal/testing/tier/run quick
//	go run ./internal/testing/tier/run full
//	go run ./internal/testing/tier/run long
//	go run ./internal/testing/tier/run measure
//
// It prints the line of each package as go test does, and the output of tests that fail. Its status is 1 if one does.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/netpoll"
)

func main() {
	os.Exit(run())
}

// run runs the tier that the command line names, and returns the status of the program.
func run() int {
	if len(os.Args) != 2 {
		stop(usage)
	}
	start, r := time.Now(), &report{}
	tier := os.Args[1]
	os.Setenv("DAIMON_TESTS", tier)
	test := map[string]func(*report){"quick": quick, "full": full, "long": long, "measure": measure}[tier]
	if test == nil {
		stop(usage)
	}
	if tier != "quick" {
		install()
		defer workspace()()
		defer database()()
	}
	test(r)
	r.print(tier)
	fmt.Printf("%s: %v\n", tier, time.Since(start).Round(time.Second))
	if r.failed() {
		return 1
	}
	return 0
}

const usage = "usage: run quick | full | long | measure"

// quick is go test ./... in the module of the library.
func quick(r *report) {
	r.test("./...")
	for _, dir := range modules()[1:] {
		r.leave("modules of their own (make test)", dir+" all")
	}
}

// lanes is how many packages are tested at a time, and how many of their tests: more than there may be CPUs, since many
// tests wait.
const lanes = "-p=3 -parallel=4"

// full runs all tests of all modules: with the race detector where goroutines share memory, then without it what the
// detector would disturb.
func full(r *report) {
	// A program with the race detector sleeps for a second at its end, unless told otherwise, which makes a minute of all
	// packages. It waits for races of goroutines that still run: in most packages goleak has found that none does.
	os.Setenv("GORACE", strings.TrimSpace("atexit_sleep_ms=100 "+os.Getenv("GORACE")))
	var raced, plain []string
	for _, p := range packages() {
		if slices.Contains(alone, p.short()) {
			plain = append(plain, p.path)
		} else {
			raced = append(raced, p.path)
		}
	}
	r.test("-count=1 -vet=off -race "+lanes, raced...)
	if disturbed, names := r.takeDisturbed(); len(names) > 0 {
		r.test("-count=1 -vet=off "+lanes+" -run=^("+strings.Join(names, "|")+")$", disturbed...)
	}
	r.test("-count=1 -vet=off "+lanes, plain...)
	batches(r)
}

// batches runs tests of programs once more, with sockets that make all calls in batches, if this kernel can. Left out are tests
// that choose how calls are made, and ones that look at other things.
func batches(r *report) {
	const why = "sockets that make their calls in batches"
	programs := []string{module + "/e2e", module + "/examples/chat", module + "/examples/nethttp"}
	b, err := netpoll.System{}.OpenBatch(1)
	if err != nil {
		fmt.Printf("\nno tests of %s: %v\n", why, err)
		for _, p := range programs {
			r.leave(why+": "+err.Error(), strings.TrimPrefix(p, module+"/")+" all")
		}
		return
	}
	b.Close()
	os.Setenv("DAIMON_ENGINE", "uring")
	defer os.Unsetenv("DAIMON_ENGINE")
	fmt.Println("\n$ DAIMON_ENGINE=uring")
	const others = "TestStorm|TestWithoutIoUring|TestEveryExampleServerIsInspected|TestMeasure.*"
	r.test("-count=1 -vet=off -race "+lanes+" -skip=^("+others+")$", programs...)
}

// alone are the packages in which no two goroutines share memory: pure functions and simulated worlds.
var alone = []string{"sim", "secure/worlds", "httpd/worlds", "httpd/websocket/worlds", "httpd/internal/http1",
	"httpd/internal/route", "httpd/internal/syntax", "httpd/websocket/internal/deflate", "httpd/websocket/internal/frame",
	"internal/testing/mutant", "internal/wheel"}

// long runs all mutants, all interleavings and all random runs, and each fuzzer for half a minute.
func long(r *report) {
	all := packages()
	var paths []string
	for _, p := range all {
		paths = append(paths, p.path)
	}
	r.test("-count=1 -vet=off -timeout=0 "+lanes, paths...)
	for _, p := range all {
		for _, name := range p.functions("Fuzz") {
			r.test("-run=^$ -fuzz=^"+name+"$ -fuzztime=30s", p.path)
		}
	}
}

// measure runs what measures, one test at a time, and prints a row for each figure.
func measure(r *report) {
	r.rows = true
	for _, p := range packages() {
		if len(p.functions("TestMeasure")) > 0 {
			r.test("-count=1 -vet=off -p=1 -parallel=1 -timeout=0 -run=^TestMeasure", p.path)
		}
	}
}

// workspace has the packages of the run share what is compiled: the go command sees all modules as one workspace, with one
// library, and there is a directory for the programs that tests start. The function that it returns ends that.
func workspace() (end func()) {
	dir, err := os.MkdirTemp("", "daimon")
	if err == nil {
		err = os.Chmod(dir, 0o755) // some programs run as another user
	}
	if err != nil {
		stop(err.Error())
	}
	os.Setenv("DAIMON_BINARIES", dir)
	os.Setenv("GOWORK", filepath.Join(dir, "go.work"))
	output(slices.Concat([]string{"work", "init"}, modules())...)
	return func() { os.RemoveAll(dir) }
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

func (p pkg) short() string { return strings.TrimPrefix(p.path, module+"/") }

// packages returns the packages of all modules. The ones that take longest are first, so that the lanes end at about
// the same time.
func packages() (all []pkg) {
	args := []string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}
	for _, dir := range modules() {
		args = append(args, "./"+filepath.ToSlash(dir)+"/...")
	}
	list := json.NewDecoder(strings.NewReader(output(args...)))
	for {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		err := list.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			stop(err.Error())
		}
		files := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		for i, name := range files {
			files[i] = filepath.Join(p.Dir, name)
		}
		if len(files) > 0 {
			all = append(all, pkg{p.ImportPath, files})
		}
	}
	slices.SortStableFunc(all, func(a, b pkg) int { return place(a) - place(b) })
	return all
}

// slow are the packages that take longest, with the race detector.
var slow = []string{"e2e", "e2e/gateway", "stage/postgres", "stage/sqlite", "process", "e2e/libraries", "e2e/browser", "stage/memory"}

func place(p pkg) int {
	if i := slices.Index(slow, p.short()); i >= 0 {
		return i
	}
	return len(slow)
}

var function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

// functions returns the names of the tests and fuzzers that begin with a prefix. It reads the files: go test -list would
// compile them all.
func (p pkg) functions(prefix string) (names []string) {
	for _, path := range p.files {
		text, err := os.ReadFile(path)
		if err != nil {
			stop(err.Error())
		}
		for _, found := range function.FindAllSubmatch(text, -1) {
			if name := string(found[1]); strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names
}

// stop ends the program with one sentence.
func stop(sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(2)
}
