package coro_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
)

// crashing, in the environment, has the test binary crash instead of running tests.
const crashing = "DAIMON_CORO_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(crashing) != "" {
		s := act.New(act.Config{Crash: true})
		s.Spawn(coro.New(func(co *coro.Co) error {
			_ = co.Yield()
			boom()
			return nil
		}))
		_ = s.Run()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestUnderCrashAPanicOfABodyEndsTheProcessAndShowsWhere(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashing+"=1")
	said, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "panic: boom")
	require.Contains(t, string(said), "coro_test.boom")
}
