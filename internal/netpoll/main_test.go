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
		"none":                              0,
		"in":                                In,
		"in|out":                            In | Out,
		"in|peer-closed":                    In | PeerClosed,
		"in|out|peer-closed|priority|error": In | Out | PeerClosed | Priority | Error,
	} {
		require.Equal(t, text, r.String())
	}
}

// Of those inside a gate, one alone finds that it has to put out the light.
func TestGateIsClosedByTheLastToLeave(t *testing.T) {
	var g gate
	require.True(t, g.enter())
	require.True(t, g.enter())
	require.False(t, g.leave(), "open")
	first, last := g.close()
	require.True(t, first)
	require.False(t, last, "one is inside")
	require.True(t, g.shut())
	require.False(t, g.enter(), "closed")
	first, _ = g.close()
	require.False(t, first)
	require.True(t, g.leave())

	var empty gate
	first, last = empty.close()
	require.True(t, first && last)
}
