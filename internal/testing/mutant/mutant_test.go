package mutant

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

const root = "../../.."

// catalogues are the folders of mutants, with what the head of each file has to say.
var catalogues = []struct {
	dir  string
	keys []string
}{
	{"sim/testdata/mutants", []string{"scenario"}},
	{"stage/memory/testdata/mutants", nil},
	{"process/testdata/interleave/faults", []string{"cases", "finding"}},
}

// TestEveryMutantApplies applies each mutant of the catalogues to today's code, and type-checks the result. Whether
// the mutants are found is tested where the catalogues are used.
func TestEveryMutantApplies(t *testing.T) {
	tier.NoRace(t, "type-checks much, in one goroutine")
	var all []*Mutant
	var packages []string
	for _, c := range catalogues {
		mutants, err := ReadAll(filepath.Join(root, c.dir))
		require.NoError(t, err)
		for _, m := range mutants {
			for _, key := range c.keys {
				require.NotEmpty(t, m.Head[key], "%s/%s.mutant has no line %q", c.dir, m.Name, "# "+key+": ")
			}
			if judge := scenario.FindStringSubmatch(m.Head["scenario"]); judge != nil {
				require.True(t, declares(t, cmp.Or(judge[2], "sim"), judge[1]), "%s/%s.mutant: there is no %s", c.dir, m.Name, judge[0])
			}
			all = append(all, m)
			for _, p := range m.Packages() {
				if !slices.Contains(packages, p) {
					packages = append(packages, p)
				}
			}
		}
	}
	c := checker{set: token.NewFileSet(), parsed: map[string]*ast.File{}}
	c.importer = importer.ForCompiler(c.set, "gc", c.lookup(t, packages))
	for _, m := range all {
		files, err := m.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range m.Packages() {
			if err := c.check(filepath.Join(root, p), files); err != nil {
				t.Errorf("mutant %s does not compile: %v", m.Name, err)
			}
		}
	}
}

var scenario = regexp.MustCompile(`^(Test\w+)(?: in ([\w/]+))?`)

// declares reports whether the package in dir has a test of that name.
func declares(t *testing.T, dir, name string) bool {
	paths, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.NoError(t, err)
	return slices.ContainsFunc(paths, func(path string) bool {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return bytes.Contains(text, []byte("\nfunc "+name+"(t *testing.T)"))
	})
}

// checker checks the types of packages whose dependencies are compiled.
type checker struct {
	set      *token.FileSet
	importer types.Importer
	parsed   map[string]*ast.File // unchanged files, by path
}

// lookup returns a function that opens the export data of what the packages import.
func (c *checker) lookup(t *testing.T, packages []string) importer.Lookup {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Stderr = &bytes.Buffer{}
	out, err := cmd.Output()
	require.NoError(t, err, "%s", cmd.Stderr)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// check type-checks a package in which some files are changed.
func (c *checker) check(dir string, changed map[string]string) error {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return err
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(dir, name)
		file := c.parsed[path]
		if text, ok := changed[path]; ok {
			file, err = parser.ParseFile(c.set, path, text, parser.SkipObjectResolution)
		} else if file == nil {
			file, err = parser.ParseFile(c.set, path, nil, parser.SkipObjectResolution)
			c.parsed[path] = file
		}
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	_, err = (&types.Config{Importer: c.importer}).Check(dir, c.set, files, nil)
	return err
}
