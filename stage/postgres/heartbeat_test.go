package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// renewed sends a heartbeat.
func renewed(t *testing.T, s *postgres.Store, l store.Lease, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	beats, err := s.Heartbeat(ctx, []store.Renewal{{Lease: l}}, time.Hour)
	if err == nil {
		require.Equal(t, []error{nil}, beats)
	}
	return err
}

// What was broken: heartbeats waited for a place in the pool, while all of them had connections that were being closed, and
// before that they tried one silent connection after the other.
func TestHeartbeatAfterAllConnectionsHaveBecomeSilent(t *testing.T) {
	cfg := newConfig(t)
	n := newNetwork(t)
	const connections = 4
	cfg.Connection = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable&pool_max_conns=%d", n.port(), database, connections)
	s := open(t, cfg)
	defer n.close() // before the store, which waits for its connections
	l := claimed(t, s, time.Hour)
	full(t, s)()
	require.NoError(t, renewed(t, s, l, 2*time.Minute))

	n.mute()
	const soon = 50 * time.Millisecond
	require.ErrorIs(t, renewed(t, s, l, soon), context.DeadlineExceeded, "this one has to find out")
	require.NoError(t, renewed(t, s, l, 2*time.Minute))
	for range connections {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		_, err := s.Get(ctx, l.Task)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, renewed(t, s, l, 2*time.Minute))
	_, err := s.Claimed(t.Context(), store.Ticket{})
	require.NoError(t, err)
}

// full takes all connections that the pool may have, until release is called.
func full(t *testing.T, s *postgres.Store) (release func()) {
	t.Helper()
	var all []*pgxpool.Conn
	for range s.Pool().Config().MaxConns {
		c, err := s.Pool().Acquire(t.Context())
		require.NoError(t, err)
		all = append(all, c)
	}
	return func() {
		for _, c := range all {
			c.Release()
		}
	}
}

// Heartbeats do not wait for your queries, however many there are.
func TestHeartbeatBesideQueries(t *testing.T) {
	s := open(t, newConfig(t))
	l := claimed(t, s, time.Hour)
	defer full(t, s)()
	require.NoError(t, renewed(t, s, l, 2*time.Minute))
}

// A heartbeat makes a new connection at once if the server has ended the one of the last.
func TestHeartbeatAfterItsConnectionHasEnded(t *testing.T) {
	s := open(t, newConfig(t))
	l := claimed(t, s, time.Hour)
	for range 3 {
		require.NoError(t, renewed(t, s, l, 2*time.Minute))
		var pid uint32
		require.NoError(t, s.Beat(t.Context(), func(conn *pgx.Conn) error {
			pid = conn.PgConn().PID()
			return nil
		}))
		do(t, s, `SELECT pg_terminate_backend($1, 10000)`, pid)
	}
	require.NoError(t, renewed(t, s, l, 2*time.Minute))
}
