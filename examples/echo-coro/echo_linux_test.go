// Package main_test holds echo-coro to what examples/echo is held to from outside, by that program's own tests.
package main_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/race"
)

// skipped are tests of examples/echo whose subject is the scheduler's, or the service's, before there is a coroutine,
// and which take their time. All others hold, with the bounds that stand there.
const skipped = "^(TestIdleReactorsDoNotWake|TestStopWithDescriptorsExhausted|TestDescriptorsExhausted|TestMaxConns)$"

func TestFromOutsideItIsEcho(t *testing.T) {
	const margin = 10 * time.Second // so that it is that run which times out, and says where
	limit := 10 * time.Minute
	if end, bounded := t.Deadline(); bounded {
		limit = time.Until(end) - margin
	}
	arguments := []string{"test", "-count=1", "-timeout", limit.String(), "-skip", skipped}
	if race.Enabled {
		arguments = append(arguments, "-race")
	}
	cmd := exec.Command("go", append(arguments, "../echo")...)
	cmd.Env = append(os.Environ(), "DAIMON_ECHO=../echo-coro")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	t.Logf("%s", said)
}
