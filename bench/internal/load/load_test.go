package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/bench/internal/cpu"
)

func TestHeardLeavesTheHolesOut(t *testing.T) {
	talk := Talk{Hear: []byte("a..da..d"), Period: 4, Hole: 1, HoleLen: 2}
	for answer, want := range map[string]bool{
		"a..da..d":  true,
		"a12da34d":  true,
		"a12Da34d":  false,
		"a12da34":   false,
		"a12da34da": false,
		"":          false,
	} {
		require.Equal(t, want, talk.Heard([]byte(answer)), answer)
	}
	require.False(t, Talk{Hear: []byte("whole")}.Heard([]byte("Whole")))
}

func TestHeardIsTheFirstPhase(t *testing.T) {
	require.True(t, Talk{Hear: []byte("abcd"), Phases: 2}.Heard([]byte("abc")))
}

func TestWhereTheLoadRuns(t *testing.T) {
	cpus, err := cpu.Allowed()
	require.NoError(t, err)
	n := len(cpus)
	beside, err := CPU(1, false)
	require.NoError(t, err)
	require.Equal(t, cpus[0], beside)
	anywhere, err := CPU(2, false)
	require.NoError(t, err)
	require.Equal(t, -1, anywhere)
	if n > 1 {
		apart, err := CPU(n-1, true)
		require.NoError(t, err)
		require.Equal(t, cpus[n-1], apart)
	}
	_, err = CPU(n, true)
	require.ErrorContains(t, err, "-apart")
}
