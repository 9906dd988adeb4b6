package proxyproto_test

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/servertest"
)

func TestMain(m *testing.M) {
	// Busy reactors let go of no processor; the clients of these tests need some too.
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}
