package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// heartbeats have a connection outside the pool. In the pool they would wait for Commits and for your queries; and when
// connections become silent, for connections that are being closed: pgx takes up to 15 s for that, and they keep their
// places in the pool meanwhile, for as long as a lease lasts.
type heartbeats struct {
	beating chan *pgx.Conn // has the connection unless a call does; nil if it has to be made
}

// Heartbeat is one statement, and waits for no row.
func (s *tasks) Heartbeat(ctx context.Context, renewals []store.Renewal, length time.Duration) (answers []error, err error) {
	if len(renewals) == 0 {
		return nil, ctx.Err()
	}
	ids, tokens := make([]int64, len(renewals)), make([]int64, len(renewals))
	var progress [][]byte
	var at []string // "" where there is none
	for i, r := range renewals {
		ids[i], tokens[i] = int64(r.Lease.Task), r.Lease.Token
		if r.Progress.Stage == "" {
			continue
		}
		if at == nil {
			progress, at = make([][]byte, len(renewals)), make([]string, len(renewals))
		}
		progress[i], at[i] = r.Progress.Data, r.Progress.Stage
	}
	err = s.beat(ctx, func(conn *pgx.Conn) (err error) {
		answers, err = collect(ctx, conn, scanAnswer, s.sql.heartbeat, ids, tokens, microseconds(length), progress, at)
		return err
	})
	return answers, s.failed(ctx, "heartbeat", err)
}

func scanAnswer(r pgx.CollectableRow) (answer, err error) {
	var renewed, lost bool
	var wanted store.Status
	err = r.Scan(&renewed, &lost, &wanted)
	switch {
	case lost:
		return store.ErrLeaseLost, err
	case !renewed:
		return store.ErrUnavailable, err
	}
	return transition.Wanted(wanted), err
}

// Claimed does not see a claim that has not been committed yet. It is a part of heartbeats.
func (s *tasks) Claimed(ctx context.Context, t store.Ticket) (all []store.Task, err error) {
	err = s.beat(ctx, func(conn *pgx.Conn) (err error) {
		all, err = collect(ctx, conn, scanned, s.sql.claimed, t.Engine, t.Number)
		return err
	})
	return all, s.failed(ctx, "claimed", err)
}

// beat calls f with the connection of heartbeats. After an error the next call makes another one. If the server has ended the
// connection since the last call, f is called again.
func (s *tasks) beat(ctx context.Context, f func(*pgx.Conn) error) (err error) {
	var conn *pgx.Conn
	select {
	case conn = <-s.beating:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.beating <- conn }()
	if s.life.Err() != nil {
		return errClosed
	}
	for {
		used := conn != nil
		if !used {
			if conn, err = s.connect(ctx); err != nil {
				conn = nil
				return err
			}
		}
		if err = f(conn); err == nil {
			return nil
		}
		lost, old := conn.IsClosed(), conn
		s.flushes.Go(func() {
			hangUp(old)
			<-old.PgConn().CleanupDone() // nothing of it is left
		})
		conn = nil
		if !used || !lost || ctx.Err() != nil {
			return err
		}
	}
}
