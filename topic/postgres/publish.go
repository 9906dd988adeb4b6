package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/topic"
)

const (
	// hintPause is how long after a NOTIFY of this machine the next one comes, at the least: a transaction that notifies has a lock
	// on the whole server while it commits.
	hintPause = 5 * time.Millisecond
	// pollPause is how long without a hint it takes until the table of messages, or the outbox, is looked at.
	pollPause = 250 * time.Millisecond
)

// store is the end of a statement that stores the messages given, in the order of n, and returns their positions. Rows of topics
// are locked in the order of names. A message gets its offset, its seq and its time under the lock of its topic: so they have
// one order, and what is visible of a topic has no gap.
const store = `, ranked AS (
	SELECT *, row_number() OVER (PARTITION BY name ORDER BY n) AS rank, count(*) OVER (PARTITION BY name) AS count FROM given
), grown AS (
	INSERT INTO daimon_topics.topic AS t (name, last, retained)
	SELECT name, count(*), max(rank) FILTER (WHERE retain) FROM ranked GROUP BY name ORDER BY name
	ON CONFLICT (name) DO UPDATE SET last = t.last + excluded.last, retained = coalesce(t.last + excluded.retained, t.retained),
		changed = clock_timestamp()
	RETURNING id, name, last
), placed AS (
	SELECT t.id, t.last - r.count + r.rank AS number, r.* FROM ranked AS r JOIN grown AS t USING (name)
), stored AS (
	INSERT INTO daimon_topics.message (topic, number, kind, tag, retain, member, data)
	SELECT id, number, kind, tag, retain, member, data FROM placed ORDER BY n
)
SELECT id, number, ` + timeline + ` FROM placed ORDER BY n`

// timeline is a part of epochs: a standby that becomes the primary begins another one, and may lack the latest messages.
const timeline = `left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`

// publish stores a batch unless the machine has stored it before.
const publish = `WITH once AS (
	UPDATE daimon_topics.machine SET batch = $2, xid = pg_current_xact_id() WHERE id = $1 AND batch < $2 RETURNING id
), given AS (
	SELECT 0 AS kind, NULL::bytea AS member, g.* FROM once, unnest($3::text[], $4::bytea[], $5::smallint[], $6::boolean[])
		WITH ORDINALITY AS g(name, data, tag, retain, n)
)` + store

// published returns the positions of a batch, if it is the latest one.
const published = `SELECT m.topic, m.number, ` + timeline + ` FROM daimon_topics.machine AS x JOIN daimon_topics.message AS m USING (xid)
	WHERE x.id = $1 AND x.batch = $2 ORDER BY m.seq`

// relay stores a part of the outbox, unless another machine does.
const relay = `WITH given AS (
	DELETE FROM daimon_topics.outbox WHERE (SELECT pg_try_advisory_xact_lock($1, 1))
		AND id = ANY(ARRAY(SELECT id FROM daimon_topics.outbox ORDER BY id LIMIT 1000))
	RETURNING 0 AS kind, NULL::bytea AS member, name, data, tag, retain, id AS n
)` + store

var errForgotten = errors.New("postgres: it is not known whether the messages were stored: this machine was away for days")

// Publish implements topic.Engine. An attempt whose outcome is not known is made again, and finds out.
func (e *Engine) Publish(ctx context.Context, messages []topic.Publication) (at []topic.Position, err error) {
	e.publishing.Lock()
	defer e.publishing.Unlock()
	batch, columns := e.batch.Add(1), newColumns(messages)
	err = e.again(ctx, func(ctx context.Context) error {
		at, err = e.positions(ctx, publish, e.machine, batch, columns.names, columns.data, columns.tags, columns.retain)
		if err != nil || len(at) == len(messages) {
			return err
		}
		var there int64
		err := e.pool.QueryRow(ctx, e.in(`SELECT batch FROM daimon_topics.machine WHERE id = $1`), e.machine).Scan(&there)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return errForgotten
		case err != nil:
			return err
		}
		if at, err = e.positions(ctx, published, e.machine, batch); len(at) != len(messages) {
			at = make([]topic.Position, len(messages)) // some are deleted
		}
		return err
	})
	wake(e.stored)
	return at, err
}

// positions executes a statement that ends with store.
func (e *Engine) positions(ctx context.Context, sql string, args ...any) ([]topic.Position, error) {
	rows, _ := e.pool.Query(ctx, e.in(sql), args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (at topic.Position, err error) {
		var id int64
		var timeline string
		err = row.Scan(&id, &at.Offset, &timeline)
		at.Epoch = epoch(id, timeline)
		return at, err
	})
}

// epoch returns the epoch of a topic. A topic that was deleted, and is there again, has another number.
func epoch(id int64, timeline string) string {
	return strconv.FormatInt(id, 36) + "." + strings.TrimLeft(timeline, "0")
}

// columns are messages as arrays.
type columns struct {
	names  []string
	data   [][]byte
	tags   []int16
	retain []bool
}

func newColumns(messages []topic.Publication) (c columns) {
	for _, m := range messages {
		if m.Data == nil {
			m.Data = []byte{} // nil is NULL
		}
		c.names, c.data = append(c.names, m.Topic), append(c.data, m.Data)
		c.tags, c.retain = append(c.tags, int16(m.Tag)), append(c.retain, m.Retain)
	}
	return c
}

// PublishIn publishes within a transaction of the program: the messages are stored if it commits. It locks no topic. The messages
// come to subscriptions, with offsets and an order that they get then, a quarter of a second after the commit at the latest;
// soon if the program calls [Engine.Hint] after it. Programs without this package call the function publish of the schema:
//
//	SELECT daimon_topics.publish('news', 'hello')
func (e *Engine) PublishIn(ctx context.Context, tx pgx.Tx, messages ...topic.Publication) error {
	c := newColumns(messages)
	_, err := tx.Exec(ctx, e.in(`INSERT INTO daimon_topics.outbox (name, data, tag, retain)
		SELECT name, data, tag, retain FROM unnest($1::text[], $2::bytea[], $3::smallint[], $4::boolean[])
		WITH ORDINALITY AS g(name, data, tag, retain, n) ORDER BY n`), c.names, c.data, c.tags, c.retain)
	return err
}

// Hint says that a transaction with PublishIn was committed.
func (e *Engine) Hint() { wake(e.outbox) }

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is to wake already
	}
}

// hint lets machines know of what was stored, and stores what is in the outbox. Hints may be lost: machines poll as well.
func (e *Engine) hint() {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for e.life.Err() == nil {
		look := true
		select {
		case <-e.stored:
			look = false
			e.notify()
		case <-e.outbox:
		case <-tick.C:
		case <-e.life.Done():
			return
		}
		for look {
			ctx, cancel := context.WithTimeout(e.life, e.answer)
			at, err := e.positions(ctx, relay, e.key)
			cancel()
			if look = err == nil && len(at) > 0; look {
				e.notify()
			}
		}
	}
}

func (e *Engine) notify() {
	ctx, cancel := context.WithTimeout(e.life, e.answer)
	defer cancel()
	_, _ = e.pool.Exec(ctx, `SELECT pg_notify($1, '')`, e.schema)
	rest(ctx, hintPause)
}
