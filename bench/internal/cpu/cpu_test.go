package cpu

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOnTiesTheThreadAndWhatItStarts(t *testing.T) {
	all, err := Allowed()
	require.NoError(t, err)
	last := all[len(all)-1]
	require.NoError(t, On([]int{last}, func() error {
		now, err := Allowed()
		require.NoError(t, err)
		require.Equal(t, []int{last}, now)
		said, err := exec.Command("sh", "-c", "grep Cpus_allowed_list /proc/self/status").Output()
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(last), strings.Fields(string(said))[1])
		return nil
	}))
	after, err := Allowed()
	require.NoError(t, err)
	require.Equal(t, all, after)
}

func TestOnNoCPUIsAnywhere(t *testing.T) {
	all, err := Allowed()
	require.NoError(t, err)
	require.NoError(t, On(nil, func() error {
		now, err := Allowed()
		require.Equal(t, all, now)
		return err
	}))
}

func TestOnTellsOfErrors(t *testing.T) {
	mine := errors.New("mine")
	require.ErrorIs(t, On([]int{0}, func() error { return mine }), mine)
	none := 1023 // the last one that a set has room for
	require.ErrorIs(t, On([]int{none}, func() error { return nil }), unix.EINVAL)
}
