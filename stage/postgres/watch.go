package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daimon-go/daimon/stage/store"
)

// What is notified of: a kind of which a task is due, one of which an engine has enqueued a task, and a task that something is
// wanted of. PostgreSQL sends equal ones of a transaction once.
func hintOfKind(kind string) string                   { return "kind " + kind }
func hintOfEnqueued(kind string, engine int64) string { return fmt.Sprintf("new %d %s", engine, kind) }
func hintOfRequest(id store.ID) string                { return fmt.Sprintf("task %d", id) }

func hint(payload string) (h store.Hint) {
	what, of, _ := strings.Cut(payload, " ")
	switch what {
	case "kind":
		h.Kind = of
	case "new":
		engine, kind, _ := strings.Cut(of, " ")
		h.Kind = kind
		h.Enqueuer, _ = strconv.ParseInt(engine, 10, 64) // 0 means no engine
	case "task":
		id, _ := strconv.ParseInt(of, 10, 64) // 0 means no task
		h.Wanted = store.ID(id)
	}
	return h
}

// announcements are the hints that engines are to hear of tasks that were enqueued. A transaction that notifies has a lock on
// the whole server while it commits, so in all transactions that enqueue they would keep these from being written to the disk
// together. A call that enqueues alone notifies in its own transaction. Hints of the others share transactions of their own.
type announcements struct {
	announcing sync.Mutex
	enqueuing  int                 // calls
	alone      time.Time           // when the latest call began that has notified itself
	hints      map[string]struct{} // not announced yet
	running    bool                // announceAll
}

// alonePause is how long after a call that has notified itself the next one does, at the least.
const alonePause = 5 * time.Millisecond

// enter begins a call that enqueues. It returns the hints of which its transaction notifies, and the hints to announce
// after it.
func (s *tasks) enter(hints []string) (now, later []string) {
	s.announcing.Lock()
	defer s.announcing.Unlock()
	s.enqueuing++
	if s.enqueuing > 1 || s.running || time.Since(s.alone) < alonePause {
		return nil, hints
	}
	s.alone = time.Now()
	return hints, nil
}

// leave ends the call, with the hints to announce.
func (s *tasks) leave(later []string) {
	s.announcing.Lock()
	defer s.announcing.Unlock()
	s.enqueuing--
	for _, hint := range later {
		s.hints[hint] = struct{}{}
	}
	if len(later) > 0 && !s.running && s.life.Err() == nil {
		s.running = true
		s.flushes.Go(s.announceAll)
	}
}

// announcePause is how long after an announcement the next one comes, at the least.
const announcePause = 2 * time.Millisecond

// announceAll announces hints until none is left, even while the store is being closed. Hints that come during an
// announcement, and the pause after it, share the next one.
func (s *tasks) announceAll() {
	for {
		s.announcing.Lock()
		hints := slices.Collect(maps.Keys(s.hints))
		clear(s.hints)
		s.running = len(hints) > 0
		s.announcing.Unlock()
		if len(hints) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), time.Second)
		_, _ = s.pool.Exec(ctx, s.sql.announce, s.schema, hints) // hints may be lost: engines poll as well
		cancel()
		select {
		case <-time.After(announcePause):
		case <-s.life.Done():
		}
	}
}

// Watch implements store.Watcher. It listens on a connection outside the pool. With Config.Pooler it only waits for the end
// of ctx.
func (s *tasks) Watch(ctx context.Context, heard func(store.Hint)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errClosed) })()
	if s.pooler {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return s.failed(ctx, "listen", s.listen(ctx, heard))
}

var errClosed = errors.New("postgres: the store is closed")

// silence is how long the listening connection is silent before it is asked whether it is still there, and how long the
// answer may take.
const silence = 10 * time.Second

// listen passes on notifications until ctx has ended or the connection is lost.
func (s *tasks) listen(ctx context.Context, heard func(store.Hint)) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.schema}.Sanitize()); err != nil {
		return err
	}
	for {
		quiet, cancel := context.WithTimeout(ctx, silence)
		n, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			heard(hint(n.Payload))
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case !pgconn.Timeout(err):
			return err
		}
		ping, cancel := context.WithTimeout(ctx, silence)
		err = conn.Ping(ping)
		cancel()
		if err != nil {
			return err
		}
	}
}

// connect makes a connection as the pool does.
func (s *tasks) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := s.pool.Config()
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err == nil && cfg.AfterConnect != nil {
		if err = cfg.AfterConnect(ctx, conn); err != nil {
			hangUp(conn)
			return nil, err
		}
	}
	return conn, err
}

// hangUp closes a connection. If that takes long, it goes on in the background.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
