package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/mutant"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/stretchr/testify/require"
)

// TestEveryInterleaving runs the package with the interleavings of its threads: small cases with all schedules that have
// few preemptions, and random worlds. The tester is in testdata/interleave. By an overlay it replaces sync and sync/atomic
// in a program of its own, so the package has no hooks, and the tested code is its very code.
//
// A step is an operation on an atomic or a mutex of this package. Code between two steps belongs to the first of them; so
// plain memory that two threads use without a lock is a matter for the race detector. Tasks, wakers, locks and queues are
// the real ones. The schedulers are real as well, but do not run: what a scheduler does between two turns of its demon is
// one step, and so is a wake-up, unless the case says otherwise.
//
// A failure prints a trace. The same flags find it again. With flags in INTERLEAVE the program runs with no others:
//
//	INTERLEAVE='-test.run=TestInterleave/killed' DAIMON_TESTS=long go test -run TestEveryInterleaving -v ./process
//	INTERLEAVE='-test.run=TestInterleaveRandomly -seed=4711' DAIMON_TESTS=long go test -run TestEveryInterleaving -v ./process
//	INTERLEAVE='-test.run=TestInterleaveRandomly -seeds=1000000' …
//	INTERLEAVE='-test.run=TestInterleave$ -deeper=1' … # one preemption more
//
// Each mutant in testdata/interleave/faults breaks one thing (package internal/testing/mutant describes the files). Its
// head names the cases that must find it, "random" being the random worlds, and what they must report. All of them are
// compiled into the one program: a function that a mutant changes is there twice, and a variable chooses.
//
//	# A queue still counts the processes that were stolen.
//	# cases: a hand-off while the receiver is stolen; random
//	# finding: says that it has
func TestEveryInterleaving(t *testing.T) {
	tier.Need(t, tier.Full, "compiles a test program of its own, and runs all cases in it")
	program := buildInterleaving(t)
	if flags := os.Getenv("INTERLEAVE"); flags != "" {
		t.Logf("%s", runInterleaving(t, program, append(strings.Fields(flags), "-test.v", "-test.timeout=0")...))
		return
	}
	for name, flags := range map[string][]string{
		"TestInterleave": {tier.Choose("", "-deeper=-1", "-deeper=0"), tier.Choose("", "-seeds=500", "-seeds=100000")},
		"TestFaults":     {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags = append(flags, "-test.run=^"+name, "-test.timeout=8m", fmt.Sprintf("-test.v=%v", testing.Verbose()))
			t.Logf("%s", runInterleaving(t, program, flags...))
		})
	}
}

// runInterleaving runs the program, and returns its output.
func runInterleaving(t *testing.T, program string, flags ...string) []byte {
	c := exec.CommandContext(t.Context(), program, flags...)
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400") // one thread runs at a time
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return out
}

// overlay lists files that the compiler takes in place of others, or in addition.
type overlay struct {
	dir     string // of the files that it writes
	replace map[string]string
}

const stepsPath = `"github.com/daimon-go/daimon/internal/steps`

// buildInterleaving compiles the tester and the package, with all faults.
func buildInterleaving(t *testing.T) (program string) {
	here, err := os.Getwd()
	require.NoError(t, err)
	x := overlay{t.TempDir(), map[string]string{}}
	sources := x.plant(t, here)
	for _, path := range glob(t, filepath.Join(here, "*.go")) {
		name := filepath.Base(path)
		switch {
		case strings.HasSuffix(name, "_test.go"):
			x.replace[path] = "" // left out
		case name == "word.go":
			x.replace[path] = filepath.Join(here, "testdata", "interleave", name)
		default:
			text := strings.NewReplacer(`"sync/atomic"`, "atomic "+stepsPath+`"`, `"sync"`, "sync "+stepsPath+`"`).Replace(sources[path])
			x.put(t, path, text)
		}
	}
	waker := filepath.Join(here, "..", "act", "waker.go")
	x.put(t, waker, strings.Replace(read(t, waker), `"sync/atomic"`, "atomic "+stepsPath+`/bells"`, 1))
	for _, path := range glob(t, filepath.Join(here, "testdata", "interleave", "*.go")) {
		switch name := filepath.Base(path); name {
		case "word.go":
		case "steps.go":
			x.replace[filepath.Join(here, "..", "internal", "steps", name)] = path
			x.replace[filepath.Join(here, "..", "internal", "steps", "bells", name)] = path // those in act, which are less interesting
		default:
			x.replace[filepath.Join(here, name)] = path
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": x.replace})
	require.NoError(t, err)
	program = filepath.Join(x.dir, "interleave.test")
	file := filepath.Join(x.dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", file, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// put replaces the file at path by text.
func (x *overlay) put(t *testing.T, path, text string) {
	file := filepath.Join(x.dir, fmt.Sprintf("%d_%s", len(x.replace), filepath.Base(path)))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	x.replace[path] = file
}

func glob(t *testing.T, pattern string) []string {
	all, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return all
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// plant returns the sources of the package, in which each function that a fault changes first checks whether that fault
// is planted. It adds a file with the list of faults.
func (x *overlay) plant(t *testing.T, here string) (sources map[string]string) {
	sources = map[string]string{}
	for _, path := range glob(t, filepath.Join(here, "*.go")) {
		sources[path] = read(t, path)
	}
	edits := map[string]map[int]string{} // by file and offset: what to insert
	var list bytes.Buffer
	mutants, err := mutant.ReadAll(filepath.Join(here, "testdata", "interleave", "faults"))
	require.NoError(t, err)
	for i, m := range mutants {
		fmt.Fprintf(&list, "\t{%q, %q, %q},\n", m.Name, m.Head["cases"], m.Head["finding"])
		files, err := m.Apply(filepath.Dir(here))
		require.NoError(t, err)
		for path, broken := range files {
			if edits[path] == nil {
				edits[path] = map[int]string{}
			}
			for offset, text := range twice(t, m.Name, fmt.Sprintf("__%d", i), sources[path], broken) {
				edits[path][offset] += text
			}
		}
	}
	for path, at := range edits {
		for _, offset := range slices.Backward(slices.Sorted(maps.Keys(at))) {
			sources[path] = sources[path][:offset] + at[offset] + sources[path][offset:]
		}
	}
	x.put(t, filepath.Join(here, "planted.go"), fmt.Sprintf("package process\n\nvar planted string\n\nvar faults = []struct{ name, cases, finding string }{\n%s}\n", &list))
	return sources
}

// twice returns what to insert into a file for each function that broken changes: a call of the changed function at the
// beginning, and the changed function, under another name, after it.
func twice(t *testing.T, fault, suffix, right, broken string) (inserts map[int]string) {
	inserts = map[int]string{}
	others := functions(t, broken)
	for key, f := range functions(t, right) {
		other, ok := others[key]
		require.True(t, ok, "%s takes %s away", fault, key)
		if other.text == f.text {
			continue
		}
		call := f.decl.Name.Name + suffix + "(" + strings.Join(names(f.decl.Type.Params), ", ") + ")"
		if f.decl.Recv != nil {
			call = names(f.decl.Recv)[0] + "." + call
		}
		if f.decl.Type.Results != nil {
			call = "return " + call
		} else {
			call += "; return"
		}
		begin := int(f.decl.Body.Lbrace - f.decl.Pos())
		inserts[f.offset+begin+1] = fmt.Sprintf("if planted == %q { %s };", fault, call)
		at := int(other.decl.Name.End() - other.decl.Pos())
		inserts[f.offset+len(f.text)] = "\n\n" + other.text[:at] + suffix + other.text[at:]
	}
	require.NotEmpty(t, inserts, "%s changes no function", fault)
	return inserts
}

// function is a function of a file, with its text.
type function struct {
	decl   *ast.FuncDecl
	offset int
	text   string
}

func functions(t *testing.T, text string) map[string]function {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	all := map[string]function{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			begin, end := set.Position(f.Pos()).Offset, set.Position(f.End()).Offset
			key := f.Name.Name
			if f.Recv != nil {
				of := f.Recv.List[0].Type
				key = text[set.Position(of.Pos()).Offset:set.Position(of.End()).Offset] + "." + key
			}
			all[key] = function{f, begin, text[begin:end]}
		}
	}
	return all
}

func names(list *ast.FieldList) (all []string) {
	for _, f := range list.List {
		for _, n := range f.Names {
			all = append(all, n.Name)
		}
	}
	return all
}
