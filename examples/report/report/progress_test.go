package report

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestShown(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for path, text := range map[string]string{
		here + "/a": "a", here + "/a/b": "a/b", "/a": "/a", here + "x": here + "x", "/two\nlines": `"/two\nlines"`,
		"/\xff": `"/\xff"`,
	} {
		require.Equal(t, text, shown(path))
	}
}
