package migration_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/internal/migration"
)

func TestRead(t *testing.T) {
	files := fstest.MapFS{
		"migrations/0002_b.sql": {Data: []byte("second")},
		"migrations/0001_a.sql": {Data: []byte("first")},
	}
	require.Equal(t, []migration.Migration{{1, "0001_a", "first"}, {2, "0002_b", "second"}}, migration.Read(files))
}

func TestReadPanicsIfANumberIsMissing(t *testing.T) {
	for name, says := range map[string]string{
		"0001_b.sql": "stage: 0001_b.sql is not migration 2 (<nil>)",
		"0003_c.sql": "stage: 0003_c.sql is not migration 2 (<nil>)",
		"c.sql":      "stage: c.sql is not migration 2 (<nil>)",
	} {
		files := fstest.MapFS{"migrations/0001_a.sql": {}, "migrations/" + name: {}}
		require.PanicsWithValue(t, says, func() { migration.Read(files) })
	}
	require.Panics(t, func() { migration.Read(fstest.MapFS{}) }, "there is no directory")
}
