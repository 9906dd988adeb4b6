package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

// TestMeasureLarge has 1,000,000 tasks: finished ones of two kinds, a few of a third one, old ones that have failed or
// were cancelled, and 100,000 that are new. Then few run, all of them old; in the end few have ended. A page takes at
// most 100 ms.
func TestMeasureLarge(t *testing.T) {
	tier.Measure(t, "pages, counts and a purge among 1,000,000 tasks")
	path := newPath(t)
	open(t, path, sqlite.Config{})
	do(t, raw(t, path), `
		WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1000000)
		INSERT INTO daimon_task (kind, stage, status, token, due, created, changed)
		SELECT CASE WHEN n % 50000 = 7 THEN 'c' WHEN n % 3 = 0 THEN 'b' ELSE 'a' END,
			CASE WHEN n < 70000 OR n > 900000 THEN 'CREATED' ELSE 'DONE' END,
			CASE WHEN n < 50000 THEN 'ERROR' WHEN n < 60000 THEN 'CANCELLED' WHEN n < 60100 THEN 'SUSPENDED' ELSE 'NORMAL' END,
			n <= 900000, CASE WHEN n > 900000 THEN n END, n, n
		FROM count`)
	s := open(t, path, sqlite.Config{Counts: true})
	kinds := []string{"a", "b", "c", "none"}
	price.AtMost(t, "ms of the slowest call", 100, func() float64 { return enginetest.Large(t, s, kinds) })
	pages := func(what string, sel store.Selection) {
		price.AtMost(t, "ms of the slowest page when "+what, 100, func() float64 { return enginetest.LargePages(t, s, kinds, sel) })
	}
	oldestRun := func(n int) {
		do(t, raw(t, path), fmt.Sprintf(`
			UPDATE daimon_task SET stage = 'DONE', due = NULL, token = 1 WHERE due IS NOT NULL;
			UPDATE daimon_task SET stage = 'CREATED', status = 'NORMAL', due = id, token = 0 WHERE id <= %d`, n))
		pages(fmt.Sprint(n, " run"), store.Selection{Running: true})
	}
	oldestRun(100)
	oldestRun(sqlite.Many)
	do(t, raw(t, path), `
		UPDATE daimon_task SET stage = 'CREATED', status = 'NORMAL', due = id, token = 0 WHERE due IS NULL AND id > 100;
		UPDATE daimon_task SET stage = 'DONE', due = NULL, token = 1 WHERE id <= 100`)
	pages("100 have ended", store.Selection{Ended: true})
}
