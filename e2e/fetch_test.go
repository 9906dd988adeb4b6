package e2e

import (
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/fetch/fetch"
)

// once sends text to the first client that connects.
func once(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		defer l.Close()
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestFetch(t *testing.T) {
	t.Parallel()
	outside(t)
	for _, form := range slices.Sorted(maps.Keys(fetch.Forms)) {
		p := run(t, "fetch", nil, "-as", form, once(t, "1\n3\n5\n"), once(t, "2\n4\n"))
		require.Zero(t, p.Exit(t), form)
		require.Equal(t, []string{"1", "2", "3", "4", "5"}, p.Lines(), form)
	}
	t.Run("connection refused", func(t *testing.T) {
		p := run(t, "fetch", nil, "127.0.0.1:1", once(t, ""))
		require.Equal(t, 1, p.Exit(t))
		require.Contains(t, p.Said(), "fetch: ")
		require.Contains(t, p.Said(), "connection refused")
	})
	for name, args := range map[string][]string{
		"missing address":                {"127.0.0.1:1"},
		`unexpected argument: "c"`:       {"a", "b", "c"},
		"-as must be one of action, cor": {"-as", "poem", "a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := run(t, "fetch", nil, args...)
			require.Equal(t, 2, p.Exit(t))
			require.Contains(t, p.Said(), name)
		})
	}
}
