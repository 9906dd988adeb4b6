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

	"github.com/daimon-go/daimon/internal/testing/mutant"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/stretchr/testify/require"
)

// TestMutants tries whether the simulation finds what it is there to find. Each mutant in testdata/mutants breaks one
// thing (package internal/testing/mutant has the form of the files, and tests that all of them still apply). Its head says
// which scenario finds it, one of this package or "TestWorldStages in stage", and how many worlds must be enough.
//
//	# A task that is woken within its own turn goes to sleep all the same.
//	# scenario: TestWorldMixed, 20 seeds
//
// What no world can show, such as a mistake of goroutines, has an ordinary test, without a number of seeds.
//
// With a line "# fault: " and the name of a fault, only this fault finds it: without it, the mutant passes. TestEachFault wants
// one for each.
//
// The number is about ten times what it takes on average, since each change of the code or of the world makes other
// worlds of the same seeds. A mutant that is found costs only the worlds up to the one that finds it.
//
// All of them take minutes. SIM_MUTANTS=2/5 in the environment takes the second of five parts.
func TestMutants(t *testing.T) {
	part, parts := 0, 1
	if s := os.Getenv("SIM_MUTANTS"); s != "" {
		_, err := fmt.Sscanf(s, "%d/%d", &part, &parts)
		require.NoError(t, err, "SIM_MUTANTS=%s", s)
		part--
	} else {
		tier.Need(t, tier.Long, "compiles and runs each mutant; SIM_MUTANTS=1/20 takes a part")
	}
	require.True(t, 0 <= part && part < parts, "SIM_MUTANTS names no part")
	all, err := mutant.ReadAll("testdata/mutants")
	require.NoError(t, err)
	for i, m := range all {
		if i%parts != part {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel() // one compiles while another runs
			mustBeFound(t, m)
		})
	}
}

var (
	mutantScenario = regexp.MustCompile(`^(Test\w+)(?: in ([\w/]+))?(?:, (\d+) seeds)?$`)
	mutantFound    = regexp.MustCompile(`(?s)_test\.go:\d+: ([^\n]*)\n.*SIM_SEED=(\d+) `)
)

// mustBeFound runs the scenario over the changed code, and wants a Failure.
func mustBeFound(t *testing.T, m *mutant.Mutant) {
	scenario := mutantScenario.FindStringSubmatch(m.Head["scenario"])
	require.NotNil(t, scenario, "%s: %q is no scenario", m.Name, m.Head["scenario"])
	seeds := scenario[3]
	dir := t.TempDir()
	program := filepath.Join(dir, "sim.test")
	in := "../" + cmp.Or(scenario[2], "sim")
	out, err := command(t, "go", "test", "-c", "-vet=off", "-ldflags=-s", "-overlay", overlay(t, m, dir), "-o", program, in).CombinedOutput()
	require.NoError(t, err, "%s does not compile:\n%s", m.Name, out)
	begun, most := time.Now(), "10m"
	if seeds == "" {
		most = "30s" // it may hang
	}
	try := func(without string) ([]byte, error) {
		run := command(t, program, "-test.run", "^"+scenario[1]+"$", "-test.timeout", most, "-test.failfast")
		run.Dir = in // as go test does
		if seeds != "" {
			run.Env = append(run.Env, "SIM_SEEDS="+seeds, "SIM_WITHOUT="+without)
		}
		return run.CombinedOutput()
	}
	if fault := m.Head["fault"]; fault != "" {
		out, err := try(fault)
		require.NoError(t, err, "%s is found without the fault %q:\n%.4000s", m.Name, fault, out)
	}
	out, err = try("")
	require.Error(t, err, "%s was not found in %s worlds: %s", m.Name, cmp.Or(seeds, "no"), m.What)
	if seeds == "" {
		require.Regexp(t, "--- FAIL: "+scenario[1]+"|test timed out", string(out), "%s ended otherwise than by a failure", m.Name)
		return
	}
	found := mutantFound.FindSubmatch(out)
	require.NotNil(t, found, "%s ended otherwise than by a Failure:\n%.4000s", m.Name, out)
	t.Logf("found by seed %s in %v: %s", found[2], time.Since(begun).Round(time.Millisecond), found[1])
}

// overlay writes the changed files, and returns the path of what tells the compiler to take them.
func overlay(t *testing.T, m *mutant.Mutant, dir string) string {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	files, err := m.Apply(root)
	require.NoError(t, err)
	replace := map[string]string{}
	for path, text := range files {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(path)))
		require.NoError(t, os.WriteFile(replace[path], []byte(text), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, list, 0o600))
	return path
}

// command returns a command that does not see this run's choice of seeds.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SIM_") {
			c.Env = append(c.Env, v)
		}
	}
	return c
}
