package netpoll

import (
	"encoding/json"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// The files for kqueue, over an emulation of it, which is in testdata/kqueue. The tests of the packages run as they
// would on that system: without tests for Linux.
func TestKqueueEmulation(t *testing.T) {
	tier.Need(t, tier.Full, "compiles packages and their tests once more")
	// What stands above is compiled for a minute.
	above := tier.Choose(nil, nil, []string{"../service", "../listener", "../httpd", "../monitor"})
	for system, packages := range map[string][]string{
		"darwin": append(above, "."),
		"netbsd": {"."}, // is interrupted by a pipe, and has accept4
	} {
		t.Run(system, func(t *testing.T) {
			args := append([]string{"test", "-vet=off", "-overlay", emulate(t, system, packages)}, packages...)
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Env = append(os.Environ(), "DAIMON_TESTS=quick")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
		})
	}
}

const emulation = `unix "github.com/daimon-go/daimon/netpoll/kqueue"`

// emulate returns the file for go test -overlay that puts the files of a system in place of the files for Linux: all
// files of this package, and the test files of the others.
func emulate(t *testing.T, system string, packages []string) string {
	there, replace, tmp := build.Default, map[string]string{}, t.TempDir()
	there.GOOS = system
	for _, dir := range packages {
		for _, path := range glob(t, filepath.Join(dir, "*.go")) {
			name := filepath.Base(path)
			onLinux, err := build.Default.MatchFile(dir, name)
			require.NoError(t, err)
			onThere, err := there.MatchFile(dir, name)
			require.NoError(t, err)
			switch {
			case onLinux && !onThere && (dir == "." || strings.HasSuffix(name, "_test.go")):
				replace[path] = "" // left out
			case onThere && !onLinux && dir == ".":
				name = "emulated_" + strings.ReplaceAll(name, "_"+system, "")
				replace[name] = filepath.Join(tmp, name)
				require.NoError(t, os.WriteFile(replace[name], transplanted(t, path), 0o600))
			}
		}
	}
	for _, path := range glob(t, "testdata/kqueue/*.go") {
		replace[filepath.Join("kqueue", filepath.Base(path))] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(tmp, "overlay.json")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	return file
}

// transplanted returns a file without its build constraint, over the emulation.
func transplanted(t *testing.T, path string) (text []byte) {
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(old)) {
		if !strings.HasPrefix(line, "//go:build ") {
			text = append(text, strings.Replace(line, `"golang.org/x/sys/unix"`, emulation, 1)...)
		}
	}
	return text
}

func glob(t *testing.T, pattern string) []string {
	all, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, all, pattern)
	return all
}
