package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// brief is a short lease.
const brief = 2 * time.Second

// TestClockOff has a server whose clock is an hour before or behind that of the workers. They claim, retry, suspend and lose
// tasks as with any other clock. No statement has a time of theirs, so it makes no difference how far the clocks of workers
// are from each other.
func TestClockOff(t *testing.T) {
	for _, hours := range []int{-1, +1} {
		t.Run(fmt.Sprint(hours), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, newConfig(t))
			pool, err := pgxpool.ParseConfig(l.cfg.Connection)
			require.NoError(t, err)
			seen := &arguments{t: t}
			pool.ConnConfig.Tracer = seen
			cfg := postgres.Config{Pool: pool, Schema: l.cfg.Schema}
			s, err := postgres.OpenAhead(t.Context(), cfg, fmt.Sprintf("(clock_timestamp() + %d * interval '1 hour')", hours))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			l.direct = s // whatever the test does has this clock, too
			work := l.config(s, brief)
			work.Workers = 8
			work.Lease *= 5 // no more are lost because the machine is busy
			e, err := stage.New(work)
			require.NoError(t, err)

			lost := enqueued(t, s, stage.NewTask{Kind: "job", Stage: "NEW"})
			_, err = s.Claim(t.Context(), stage.Claim{
				Worker: "lost", Kinds: []string{"job"}, Limit: 1, Length: brief,
				Shows: []stage.Show{{Kind: "job", Found: "NEW", Stage: "FIRST"}},
			})
			require.NoError(t, err)
			var ids []stage.ID
			for _, data := range []string{"fails", "suspended", "", "", ""} {
				id, err := e.Enqueue(t.Context(), "job", []byte(data))
				require.NoError(t, err)
				ids = append(ids, id)
			}
			ok, err := s.Suspend(t.Context(), ids[1])
			require.NoError(t, err)
			require.True(t, ok)
			x, err := s.Get(t.Context(), lost)
			require.NoError(t, err)
			require.InDelta(t, hours, time.Until(x.Created).Hours(), 0.1)

			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { require.NoError(t, e.Run(ctx)) })
			l.settled() // which resumes
			stop()
			all.Wait()
			l.verdict(1, hours)
			x, err = s.Get(t.Context(), lost)
			require.NoError(t, err)
			require.EqualValues(t, 2, x.Token)
			for _, x := range seen.times() {
				require.InDelta(t, hours, time.Until(x).Hours(), 0.5, "a time of the worker's clock got into a statement")
			}
		})
	}
}

// arguments is a tracer that collects the times in the arguments of all statements.
type arguments struct {
	t   *testing.T
	mu  sync.Mutex
	all []time.Time
}

// times returns those that it has collected.
func (a *arguments) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	require.NotEmpty(a.t, a.all)
	return a.all
}

func (a *arguments) add(args []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, arg := range args {
		switch x := arg.(type) {
		case time.Time:
			a.all = append(a.all, x)
		case *time.Time:
			if x != nil {
				a.all = append(a.all, *x)
			}
		case []*time.Time:
			for _, at := range x {
				if at != nil {
					a.all = append(a.all, *at)
				}
			}
		case bool, []bool, int, []int, int64, []int64, stage.ID, string, []string, []byte, [][]byte, pgx.QueryExecMode:
		default:
			a.t.Errorf("perhaps this argument has a time: %T", x)
		}
	}
}

func (a *arguments) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	a.add(q.Args)
	return ctx
}

func (a *arguments) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (a *arguments) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		a.add(q.Arguments)
	}
	return ctx
}

func (a *arguments) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (a *arguments) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
