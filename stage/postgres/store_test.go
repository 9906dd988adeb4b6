package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
)

// TestStore runs the suite on a schema with a clock of its own, with two Stores.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, newConfig(t)) })
}

// harness makes a clock that stands still: a function, and a table with what it returns.
func harness(t *testing.T, cfg postgres.Config) storetest.Harness {
	admin := open(t, cfg)
	clock := admin.Schema() + ".test_clock"
	do(t, admin, `CREATE TABLE `+clock+` AS SELECT timestamptz '2001-09-09 01:46:40Z' AS now`)
	do(t, admin, `CREATE FUNCTION `+clock+`() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM `+clock+`'`)
	connect := func() *postgres.Store {
		s, err := postgres.OpenClock(t.Context(), cfg, clock+"()")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	return storetest.Harness{
		Store: connect(),
		Again: func() store.Store { return connect() },
		Advance: func(d time.Duration) {
			do(t, admin, `UPDATE `+clock+` SET now = now + $1::bigint * interval '1 microsecond'`, d.Microseconds())
		},
	}
}

// BenchmarkStore has each claim look at everything, as with a clock of a test: it claims again what was lost at once.
func BenchmarkStore(b *testing.B) {
	for name, counts := range map[string]bool{"plain": false, "counts": true} {
		b.Run(name, func(b *testing.B) {
			enginetest.BenchmarkStore(b, func(b *testing.B) store.Store {
				cfg := newConfig(b)
				cfg.Counts = counts
				s, err := postgres.OpenClock(b.Context(), cfg, "clock_timestamp()")
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, s.Close()) })
				return s
			})
		})
	}
}

func BenchmarkEngine(b *testing.B) {
	enginetest.Benchmark(b, func(b *testing.B) store.Store { return open(b, newConfig(b)) })
}
