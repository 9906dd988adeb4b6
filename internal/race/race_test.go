package race_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/race"
)

func TestEnabledIsWhatTheBuildSays(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	built := false
	for _, s := range info.Settings {
		built = built || s.Key == "-race" && s.Value == "true"
	}
	require.Equal(t, built, race.Enabled)
}
