package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
)

// behind returns a configuration that goes through a PgBouncer in transaction mode, with that many connections.
func behind(t testing.TB, connections int) func(t testing.TB) postgres.Config {
	t.Helper()
	srv := server(t)
	tier.Tool(t, "pgbouncer")
	b, err := srv.Bounce(connections)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return func(t testing.TB) postgres.Config {
		return postgres.Config{
			Connection: b.URL(database) + "&pool_max_conns=8", Pooler: true, Schema: fmt.Sprint("behind ", schemas.Add(1)),
		}
	}
}

func TestStoreBehindPooler(t *testing.T) {
	tier.Need(t, tier.Long, "the suite of stores once more")
	t.Parallel()
	cfg := behind(t, 4)
	storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, cfg(t)) })
}

// TestPoolerMixes has eight connections of the program share two of the server: what one prepares or sets is not there for
// the next statement.
func TestPoolerMixes(t *testing.T) {
	cfg := behind(t, 2)(t)
	s := open(t, cfg)
	const tasks = 400
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range tasks / 8 {
				ids, err := s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
				require.NoError(t, err)
				_, err = s.Get(t.Context(), ids[0])
				require.NoError(t, err)
				var got []store.Task
				for len(got) == 0 { // a claim and a heartbeat leave out what another claim looks at
					got, err = s.Claim(t.Context(), store.Claim{Kinds: []string{"a"}, Limit: 1, Length: time.Hour, Shows: working})
					require.NoError(t, err)
				}
				beats, err := s.Heartbeat(t.Context(), []store.Renewal{{Lease: got[0].Lease()}}, time.Hour)
				require.NoError(t, err)
				require.NotErrorIs(t, beats[0], store.ErrLeaseLost)
				require.NoError(t, s.Finish(t.Context(), got[0].Lease(), last, nil))
			}
		})
	}
	all.Wait()
	require.Equal(t, tasks, count(t, s, s.Schema()+".task WHERE stage = 'DONE'"))
}
