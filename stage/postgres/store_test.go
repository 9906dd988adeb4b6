package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
	"github.com/stretchr/testify/require"
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

// TestMeasureLarge has 1,000,000 tasks: finished ones of two kinds, a few of a third one, old ones that have failed or
// were cancelled, and 100,000 that are new. Then few run, all of them old. A page takes at most 100 ms.
func TestMeasureLarge(t *testing.T) {
	tier.Measure(t, "pages, counts and a purge among 1,000,000 tasks")
	cfg := newConfig(t)
	s := open(t, cfg)
	do(t, s, `INSERT INTO `+s.Schema()+`.task (kind, stage, status, token, due, created, changed)
		SELECT CASE WHEN n % 50000 = 7 THEN 'c' WHEN n % 3 = 0 THEN 'b' ELSE 'a' END,
			CASE WHEN n < 70000 OR n > 900000 THEN 'CREATED' ELSE 'DONE' END,
			CASE WHEN n < 50000 THEN 'ERROR' WHEN n < 60000 THEN 'CANCELLED' WHEN n < 60100 THEN 'SUSPENDED' ELSE 'NORMAL' END,
			(n <= 900000)::int, CASE WHEN n > 900000 THEN now() END, now(), now() - (1000000 - n) * interval '1 ms'
		FROM generate_series(1, 1000000) AS n`)
	cfg.Counts = true
	s = open(t, cfg)
	kinds := []string{"a", "b", "c", "none"}
	price.AtMost(t, "ms of the slowest call", 100, func() float64 { return enginetest.Large(t, s, kinds) })
	pages := func(what string, sel store.Selection) {
		price.AtMost(t, "ms of the slowest page when "+what, 100, func() float64 { return enginetest.LargePages(t, s, kinds, sel) })
	}
	oldestRun := func(n int) {
		do(t, s, `UPDATE `+s.Schema()+`.task SET stage = 'DONE', due = NULL, token = 1 WHERE due IS NOT NULL`)
		do(t, s, `UPDATE `+s.Schema()+`.task SET stage = 'CREATED', status = 'NORMAL', due = now(), token = 0 WHERE id <= $1`, n)
		pages(fmt.Sprint(n, " run"), store.Selection{Running: true})
	}
	oldestRun(100)
	oldestRun(postgres.Many)
	do(t, s, `UPDATE `+s.Schema()+`.task SET stage = 'CREATED', status = 'NORMAL', due = now(), token = 0 WHERE due IS NULL AND id > 100`)
	do(t, s, `UPDATE `+s.Schema()+`.task SET stage = 'DONE', due = NULL, token = 1 WHERE id <= 100`)
	pages("100 have ended", store.Selection{Ended: true})
}
