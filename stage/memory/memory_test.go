package memory_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/mutant"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestRandom(t *testing.T) { storetest.Random(t, 15, open) }

// open gives a store whose clock is the test's.
func open(*testing.T) storetest.Harness {
	clock := time.Unix(1e9, 0)
	s := memory.New(func() time.Time { return clock })
	return storetest.Harness{
		Store:   s,
		Again:   func() store.Store { return s },
		Advance: func(d time.Duration) { clock = clock.Add(d) },
	}
}

func BenchmarkStore(b *testing.B) {
	enginetest.BenchmarkStore(b, func(*testing.B) store.Store { return memory.New(nil) })
}

// TestMutants breaks the rules of package transition, one at a time, and has TestStore find each mistake. The twin of
// storetest follows the same rules, so it is the tables and the other tests of the suite that find them.
func TestMutants(t *testing.T) {
	tier.Need(t, tier.Long, "compiles and runs each mutant")
	all, err := mutant.ReadAll("testdata/mutants")
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files, err := m.Apply(root)
			require.NoError(t, err)
			replace := map[string]string{}
			for path, text := range files {
				replace[path] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
				require.NoError(t, os.WriteFile(replace[path], []byte(text), 0o600))
			}
			overlay, err := json.Marshal(map[string]any{"Replace": replace})
			require.NoError(t, err)
			list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "memory.test")
			require.NoError(t, os.WriteFile(list, overlay, 0o600))
			out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", program, ".").CombinedOutput()
			require.NoError(t, err, "%s", out)
			out, err = exec.CommandContext(t.Context(), program, "-test.run", "^TestStore$", "-test.timeout", "5m").CombinedOutput()
			require.Error(t, err, "%s was not found: %s", m.Name, m.What)
			require.Contains(t, string(out), "Error Trace:", "%s ended otherwise than by an assertion", m.Name)
		})
	}
}
