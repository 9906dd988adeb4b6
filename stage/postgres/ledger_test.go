package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// thirds is the chain of tests that count what was done. All stages but the last write a row.
var thirds = stage.Begin("NEW").Then("FIRST", "write", "ONE").Then("SECOND", "write", "TWO").Then("THIRD", "write", "THREE").
	Then("LAST", "nothing", "DONE")

// rows is how many rows a task has at a static stage.
var rows = map[string]int{"NEW": 0, "ONE": 1, "TWO": 2, "THREE": 3, "DONE": 3}

// ledger is a schema with the rows that processors write in the transactions of their stages, and with those of a trigger:
// it notes each lease that is lost, and each attempt that is counted.
type ledger struct {
	*require.Assertions
	t      testing.TB
	cfg    postgres.Config
	direct *postgres.Store
	failed atomic.Int64 // errors of processors
}

func newLedger(t testing.TB, cfg postgres.Config) *ledger {
	l := &ledger{Assertions: require.New(t), t: t, cfg: cfg, direct: open(t, cfg)}
	do(t, l.direct, l.sql(`
		CREATE TABLE its.step (task bigint NOT NULL, stage text NOT NULL);
		CREATE TABLE its.ledger (task bigint NOT NULL, lost boolean NOT NULL, counted boolean NOT NULL);
		CREATE FUNCTION its.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO its.ledger VALUES (NEW.id, NEW.token > OLD.token AND OLD.status = 'IN_PROCESSING', NEW.attempt > OLD.attempt);
			RETURN NULL;
		END $$;
		CREATE TRIGGER note AFTER UPDATE ON its.task FOR EACH ROW
			WHEN (NEW.token > OLD.token AND OLD.status = 'IN_PROCESSING' OR NEW.attempt > OLD.attempt) EXECUTE FUNCTION its.note()`))
	return l
}

// sql returns a text for the schema.
func (l *ledger) sql(text string) string {
	return strings.ReplaceAll(text, "its.", l.direct.Schema()+".")
}

// config is that of an engine over s, whose processors take a random time below pause.
func (l *ledger) config(s *postgres.Store, pause time.Duration) stage.Config {
	insert := `INSERT INTO ` + s.Schema() + `.step (task, stage) VALUES ($1, $2)`
	// Work goes on at the step that a worker before has noted.
	work := func(ctx context.Context, t *stage.Task) error {
		if string(t.Data) == "fails" && t.Stage == "SECOND" && t.Attempt == 0 {
			l.failed.Add(1)
			return errors.New("no luck at first")
		}
		n := 0
		if _, err := fmt.Sscanf(string(t.Progress), t.Stage+" %d", &n); err != nil && len(t.Progress) > 0 {
			return fmt.Errorf("%w: progress at %s: %q", stage.ErrPermanent, t.Stage, t.Progress)
		}
		for ; n < 3; n++ {
			select {
			case <-time.After(rand.N(pause / 3)):
			case <-ctx.Done():
			}
			t.SetProgress(fmt.Appendf(nil, "%s %d", t.Stage, n+1))
		}
		return nil
	}
	return stage.Config{
		Store: s, Kinds: map[string]stage.Kind{"job": {Chain: thirds}},
		Provider: stage.Processors{
			"write": stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
				return func(ctx context.Context, tx stage.Tx) error {
					_, err := postgres.Tx(tx).Exec(ctx, insert, t.ID, t.Stage)
					return err
				}, work(ctx, t)
			}),
			"nothing": stage.ProcessorFunc(func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
				return nil, work(ctx, t)
			}),
		},
		Workers: 3, Lease: lease, Heartbeat: lease / 10, Poll: 100 * time.Millisecond,
		Backoff: func(int) time.Duration { return 10 * time.Millisecond }, Logger: zap.NewNop(),
	}
}

// ended reports whether all tasks have ended. Those that a late request has suspended are resumed.
func (l *ledger) ended() bool {
	all, err := l.direct.List(l.t.Context(), stage.Selection{})
	for _, x := range all {
		if x.Status == stage.Suspended {
			_, _ = l.direct.Resume(l.t.Context(), x.ID, false) // or later
		}
		if x.Runs() || x.Status == stage.Suspended {
			return false
		}
	}
	return err == nil
}

// settled waits until all tasks have ended.
func (l *ledger) settled() {
	l.Eventually(l.ended, 2*time.Minute, 20*time.Millisecond)
}

// verdict counts what the processors have written: each stage that has ended was committed once. No attempt was counted but
// for the errors of processors and for lost leases, of which there are mayLose.
func (l *ledger) verdict(mayLose int, about any) {
	for _, x := range l.tasks() {
		if string(x.Data) != "cancelled" || x.Status != stage.Cancelled {
			l.Equal("DONE NORMAL", x.Stage+" "+string(x.Status), "%v: %s", about, x.Failure)
		}
		l.Equal(rows[x.Stage], l.count(`its.step WHERE task = $1`, x.ID), "%v: %v", about, x)
	}
	l.Zero(l.count(`(SELECT FROM its.step GROUP BY task, stage HAVING count(*) > 1) AS twice`), "%v", about)
	lost := l.lost()
	l.LessOrEqual(lost, mayLose, "leases: %v", about)
	l.LessOrEqual(l.count(`its.ledger WHERE lost AND counted`), lost, "%v", about)
	l.LessOrEqual(l.count(`its.ledger WHERE counted AND NOT lost`), int(l.failed.Load()), "attempts: %v", about)
}

func (l *ledger) tasks() []stage.Task {
	all, err := l.direct.List(l.t.Context(), stage.Selection{})
	l.NoError(err)
	return all
}

// lost is how many leases have ended in the hands of a worker.
func (l *ledger) lost() int { return l.count(`its.ledger WHERE lost`) }

func (l *ledger) count(from string, args ...any) int {
	return count(l.t, l.direct, l.sql(from), args...)
}

// disconnected waits until the server has none of the connections of that name left.
func disconnected(t testing.TB, s *postgres.Store, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, s, `pg_stat_activity WHERE application_name = $1`, name) == 0
	}, time.Minute, 20*time.Millisecond, "connections of the server are left: %s", name)
}
