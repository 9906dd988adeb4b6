package sim_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMutants looks whether the simulation finds what it is there to find. Each patch in testdata/mutants breaks one
// thing that somebody might break; its head says in comments what, in how many worlds that must be found, and by
// which scenario. The number is about ten times what it takes on average, since every change of the code or of
// the world deals the cards anew; a mutant that is found costs only the worlds up to that.
//
//	# A task that is woken within its own turn goes to sleep all the same.
//	# seeds: 20
//	# scenario: TestMixed
//
// A scenario is one of this package, or "TestStages in stage".
//
// To make one, change the file, put `git diff` under such a head, and take the change back.
//
// All of them take minutes. SIM_MUTANTS=2/5 in the environment takes those of the second of five parts.
func TestMutants(t *testing.T) {
	part, parts := 0, 1
	if s := os.Getenv("SIM_MUTANTS"); s != "" {
		_, err := fmt.Sscanf(s, "%d/%d", &part, &parts)
		require.NoError(t, err, "SIM_MUTANTS=%s", s)
		part--
	}
	require.True(t, 0 <= part && part < parts, "SIM_MUTANTS is none of the parts")
	patches, err := filepath.Glob("testdata/mutants/*.patch")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(patches), 8)
	for i, path := range patches {
		if i%parts != part {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".patch"), func(t *testing.T) {
			t.Parallel() // at most GOMAXPROCS of them: one compiles while another runs
			readMutant(t, path).mustBeFound(t)
		})
	}
}

// mutant is the code with one bug more.
type mutant struct {
	patch    string // path of it
	text     string
	file     string // what it changes, from the root of the module
	seeds    string
	scenario string
	in       string // the package that has it
}

var mutantHead = regexp.MustCompile(`^# \S.*\n# seeds: (\d+)\n# scenario: (Test\w+)(?: in (\w+))?\n(?:diff .*\n)?(?:index .*\n)?--- a/(\S+)\n\+\+\+ b/(\S+)\n`)

func readMutant(t *testing.T, path string) *mutant {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head := mutantHead.FindStringSubmatch(string(text))
	require.NotNil(t, head, "%s does not begin with what is broken, seeds, scenario, and the diff of one file", path)
	require.Equal(t, head[4], head[5])
	require.Equal(t, 1, strings.Count(string(text), "\n+++ "), "%s changes more than one file", path)
	return &mutant{patch: path, text: string(text), file: head[4], seeds: head[1], scenario: head[2], in: filepath.Join("..", cmp.Or(head[3], "sim"))}
}

// mustBeFound has the tests of this package run over the changed code, and wants a Failure of them.
func (m *mutant) mustBeFound(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sim.test")
	out, err := m.command(t, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", m.overlay(t, dir), "-o", program, m.in).CombinedOutput()
	require.NoError(t, err, "%s does not compile:\n%s", m.patch, out)
	begun := time.Now()
	run := m.command(t, program, "-test.run", "^"+m.scenario+"$", "-test.timeout", "2m")
	run.Env = append(run.Env, "SIM_SEEDS="+m.seeds)
	out, err = run.CombinedOutput()
	require.Error(t, err, "%s was not found in %s worlds: %s", m.patch, m.seeds, m.text[:strings.Index(m.text, "\n")])
	found := mutantFound.FindSubmatch(out)
	require.NotNil(t, found, "%s ended otherwise than by a Failure:\n%.4000s", m.patch, out)
	t.Logf("found by seed %s in %v: %s", found[2], time.Since(begun).Round(time.Millisecond), found[1])
}

var mutantFound = regexp.MustCompile(`(?s)_test\.go:\d+: ([^\n]*)\n.*SIM_SEED=(\d+) `)

// overlay applies the patch to a copy and returns what tells the compiler to take that instead.
func (m *mutant) overlay(t *testing.T, dir string) string {
	original, err := filepath.Abs(filepath.Join("..", m.file))
	require.NoError(t, err)
	patch, err := filepath.Abs(m.patch)
	require.NoError(t, err)
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	changed := filepath.Join(dir, m.file)
	require.NoError(t, os.MkdirAll(filepath.Dir(changed), 0o700))
	require.NoError(t, os.WriteFile(changed, text, 0o600))
	apply := m.command(t, "git", "apply", patch)
	apply.Dir = dir
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s no longer applies to %s: break the same thing there anew, and renew the patch\n%s", m.patch, m.file, out)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, overlay, 0o600))
	return path
}

// command is one that hears neither of this run's seeds nor of a repository around the temporary directory.
func (m *mutant) command(t *testing.T, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SIM_") && !strings.HasPrefix(v, "GIT_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "GIT_DIR="+os.DevNull)
	return c
}
