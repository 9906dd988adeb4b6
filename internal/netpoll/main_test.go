package netpoll

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestReadyIsWrittenAsItsParts(t *testing.T) {
	for text, r := range map[string]Ready{
		"none":           0,
		"in":             In,
		"in|out":         In | Out,
		"in|peer-closed": In | PeerClosed,
		"in|out|peer-closed|priority|error|partial": In | Out | PeerClosed | Priority | Error | Partial,
	} {
		require.Equal(t, text, r.String())
	}
}
