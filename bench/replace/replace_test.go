package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/internal/traffic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needs has the programs that systems need.
var needs = map[string]string{"nginx": "nginx", "nginx-upgrade": "nginx", "haproxy": "haproxy", "haproxy-patient": "haproxy"}

// Each system is replaced once, and nothing is left behind.
func TestWhatClientsSee(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	before := server.Children(os.Getpid())
	chosen := names()
	for _, name := range chosen {
		if program := needs[name]; program != "" {
			tier.Tool(t, program)
		}
	}
	var out strings.Builder
	o := Options{Systems: strings.Join(chosen, ","), Replacements: 1, Every: 300 * time.Millisecond, Reactors: 2, Resting: 16, RoundTrip: time.Millisecond}
	require.NoError(t, run(t.Context(), &out, o))
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 4+len(chosen)+1, out.String())
	columns := strings.Split(lines[2], "|")
	for i, name := range chosen {
		t.Run(name, func(t *testing.T) {
			cells := strings.Split(lines[4+i], "|")
			require.Len(t, cells, len(columns))
			figures := map[string]int{}
			for i, column := range columns {
				figures[strings.TrimSpace(column)], _ = strconv.Atoi(strings.TrimSpace(cells[i])) // two columns have words
			}
			require.Positive(t, figures["requests"])
			require.Positive(t, figures["connections"])
			require.Zero(t, figures["wrong"])
			switch name {
			case "daimon":
				for k := range traffic.Kind(traffic.Kinds) {
					require.Zero(t, figures[k.String()], k)
				}
			case "daimon-restart":
				require.Positive(t, figures["refused"])
			case "haproxy-patient":
				require.Zero(t, figures["closed at rest"])
			default: // also to see that the old processes are told to end
				require.Positive(t, figures["closed at rest"])
			}
		})
	}
	require.Equal(t, before, server.Children(os.Getpid()))
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "bench-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAMissingProgramIsNamed(t *testing.T) {
	defer func(before string) { sbin = before }(sbin)
	sbin = t.TempDir()
	t.Setenv("PATH", sbin)
	for name, packages := range map[string]string{"nginx": "nginx-light", "haproxy": "haproxy"} {
		_, err := find(name, packages)
		require.ErrorContains(t, err, "apt-get install "+packages)
	}
}

func TestAnUnknownSystemIsAnError(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, Options{Systems: "apache"}), "-systems takes some of daimon,daimon-restart,nginx,")
}
