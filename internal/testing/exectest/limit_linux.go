package exectest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// AllowDescriptors lets this process, and what it starts, have n of them.
func AllowDescriptors(t testing.TB, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if limit.Cur >= n {
		return
	}
	limit.Cur, limit.Max = n, max(n, limit.Max)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit),
		"this test needs %d descriptors: raise the hard limit (ulimit -Hn) for the user that runs it", n)
}
