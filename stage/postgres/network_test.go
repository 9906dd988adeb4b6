package postgres_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// network is a proxy before the server, whose connections can become silent: nothing gets through, and nobody learns of it.
type network struct {
	listener net.Listener
	all      sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	mutes chan struct{} // closed to silence the connections that there are
}

func newNetwork(t testing.TB) *network {
	t.Helper()
	cfg, err := pgx.ParseConfig(server(t).Socket(database))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &network{listener: l, mutes: make(chan struct{})}
	n.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
			server, err := net.Dial(network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			n.mu.Lock()
			n.conns = append(n.conns, client, server)
			muted := n.mutes
			n.mu.Unlock()
			n.all.Go(func() { pass(client, server, muted) })
			n.all.Go(func() { pass(server, client, muted) })
		}
	})
	return n
}

// pass sends on what it reads, until one side is closed, which closes the other, or muted is closed.
func pass(from, to net.Conn, muted <-chan struct{}) {
	bytes := make([]byte, 1<<16)
	for {
		n, err := from.Read(bytes)
		select {
		case <-muted:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if n > 0 {
			_, err = to.Write(bytes[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func (n *network) port() int { return n.listener.Addr().(*net.TCPAddr).Port }

// mute silences all connections for good, but not new ones: as when the server moves to another machine.
func (n *network) mute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.mutes)
	n.mutes = make(chan struct{})
}

// close ends all connections, and returns when nothing of the proxy runs any more.
func (n *network) close() {
	_ = n.listener.Close()
	n.mu.Lock()
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.all.Wait()
}

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
