package netpoll

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are what the test binary does instead of testing when a test starts it as another program.
var children = map[string]func(){}

const childVariable = "NETPOLL_TEST_CHILD"

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		child()
		os.Exit(0)
	}
	if err := openRuntimePoller(); err != nil { // and not in the middle of a test that counts descriptors
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
