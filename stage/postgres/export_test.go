package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// OpenClock is Open with the SQL of another clock.
func OpenClock(ctx context.Context, cfg Config, clock string) (*Store, error) {
	return open(ctx, cfg, clock)
}

// Texts are statements.
type Texts struct{ Heads, Claim, Claimed, Enter, Finish, Heartbeat, Get string }

// Texts returns the statements of a store that engines make all the time.
func (s *Store) Texts() Texts {
	return Texts{s.sql.heads, s.sql.claim, s.sql.claimed, s.sql.enter, s.sql.finish, s.sql.heartbeat, s.sql.get}
}

// InOrder is the statement before that of Listing, which finds what sel selects.
const InOrder = inOrder

func (s *Store) Listing(sel store.Selection, few bool) string { return s.list(sel, few) }

// Many is how many tasks are too many to look at all of them for a page.
const Many = transition.Many

// Counting returns the statement that counts the tasks that run, or have ended.
func (s *Store) Counting(sel store.Selection) (text string, args []any) {
	text, args = countNarrow(sel)
	return s.sql.adapted(text), args
}

// Beat calls f with the connection of heartbeats.
func (s *Store) Beat(ctx context.Context, f func(*pgx.Conn) error) error { return s.beat(ctx, f) }

// Schema quotes the name of a store's schema.
func (s *Store) Schema() string { return pgx.Identifier{s.schema}.Sanitize() }

// Repetition says what may come of a call that was refused with that code, if it is made again.
func Repetition(code string) string {
	return [...]string{"never", "perhaps", "later"}[repeated(&pgconn.PgError{Code: code})]
}

// Since returns where a claim begins after full claims of tasks of these times.
func Since(claimed ...time.Time) time.Time {
	s := claims{pause: time.Hour, since: map[string]time.Time{}}
	for _, at := range claimed {
		s.next = time.Time{}
		b := s.begin([]string{"a"})
		b.latest["a"] = at
		s.ended(b, true)
	}
	return *s.begin([]string{"a"}).since[0]
}

// Beside calls f while another call enqueues.
func (s *Store) Beside(f func()) {
	s.enter(nil)
	defer s.leave(nil)
	f()
}
