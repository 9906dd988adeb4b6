package accesslog

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// Without a log a server does not ask the kernel for the address of each client.
func TestWithoutTheFlagThereIsNoLog(t *testing.T) {
	for _, arguments := range [][]string{nil, {"-access-log", "x"}} {
		l, fs := &Log{}, flag.NewFlagSet("", flag.ContinueOnError)
		check, early := l.Flags(fs), l.OnResponse()
		require.NoError(t, fs.Parse(arguments))
		require.NoError(t, check())
		require.Equal(t, arguments != nil, l.OnResponse() != nil)
		if arguments == nil {
			require.NoError(t, l.Setup(act.New(act.Config{})))
			require.Nil(t, l.writer)
			early(nil, nil) // does nothing
		}
	}
}
