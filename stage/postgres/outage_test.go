package postgres_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// TestRestarted has two engines work while all connections end, again and again, and the server is restarted, in order and as a
// crash does. Leases outlast that. All tasks finish, no attempt is counted, and each stage was committed once.
func TestRestarted(t *testing.T) {
	t.Parallel()
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	srv, err := pgserver.Start(pgserver.ForTests)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	cfg := postgres.Config{Connection: srv.Socket("postgres") + " pool_max_conns=6"}
	direct := open(t, cfg)
	do(t, direct, `CREATE TABLE daimon.step (task bigint, stage text)`)

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	chain := stage.Begin("NEW").Then("FIRST", "write", "ONE").Then("SECOND", "write", "TWO").Then("THIRD", "write", "DONE")
	for range 2 {
		s := open(t, cfg)
		e, err := stage.New(stage.Config{
			Store: s, Kinds: map[string]stage.Kind{"job": {Chain: chain}}, Workers: 3, Lease: time.Hour, Poll: 100 * time.Millisecond,
			Logger: zap.NewNop(),
			Processors: map[string]stage.Processor{"write": func(_ context.Context, t *store.Task) (store.Commit, error) {
				time.Sleep(rand.N(100 * time.Millisecond))
				return func(ctx context.Context, tx store.Tx) error {
					_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO daimon.step VALUES ($1, $2)`, t.ID, t.Stage)
					return err
				}, nil
			}},
		})
		require.NoError(t, err)
		all.Go(func() { require.NoError(t, e.Run(ctx)) })
	}
	const tasks = 100
	_, err = direct.Enqueue(ctx, slices.Repeat([]store.NewTask{{Kind: "job", Stage: "NEW"}}, tasks)...)
	require.NoError(t, err)
	works := func(more int) {
		t.Helper()
		direct.Pool().Reset() // whose connections may be lost
		before := count(t, direct, `daimon.step`)
		require.Eventually(t, func() bool { return count(t, direct, `daimon.step`) >= min(before+more, 3*tasks) }, 2*time.Minute, 5*time.Millisecond)
	}
	for range 5 {
		works(2)
		require.NoError(t, srv.Terminate())
	}
	for _, crash := range []bool{false, true} {
		works(10)
		if crash {
			srv.Kill()
		}
		require.NoError(t, srv.Restart())
	}
	direct.Pool().Reset()
	require.Eventually(t, func() bool {
		return count(t, direct, `daimon.task WHERE stage = 'DONE' AND status = 'NORMAL'`) == tasks
	}, 2*time.Minute, 20*time.Millisecond)
	stop()
	all.Wait()
	require.Equal(t, tasks, count(t, direct, `daimon.task WHERE token = 1`), "no lease is lost")
	require.Zero(t, count(t, direct, `daimon.failure`))
	require.Equal(t, 3*tasks, count(t, direct, `daimon.step`))
	require.Equal(t, 3*tasks, count(t, direct, `(SELECT DISTINCT task, stage FROM daimon.step) AS steps`))
}
