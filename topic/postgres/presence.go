package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/topic"
)

// presence is what the names of the topics begin with in which members join and leave.
const presence = "$presence/"

// member is somebody who is present on a machine.
type member struct{ topic, id string }

// lockMachine and lockTopics come before change, which so sees what others have changed.
const (
	lockMachine = `SELECT FROM daimon_topics.machine WHERE id = $1 FOR UPDATE`
	lockTopics  = `INSERT INTO daimon_topics.topic AS t (name, last) SELECT DISTINCT name, 0 FROM unnest($1::text[]) AS g(name) ORDER BY name
		ON CONFLICT (name) DO UPDATE SET last = t.last`
)

// change changes members of a machine, unless it is gone, or not gone any more. It stores messages of those of whom no other
// machine has the same member.
const change = `WITH changed AS (
	SELECT t.id AS topic, g.* FROM unnest($3::text[], $4::bytea[], $5::bytea[], $6::boolean[]) WITH ORDINALITY AS g(name, id, info, joins, n)
		JOIN daimon_topics.topic AS t USING (name) JOIN daimon_topics.machine AS x ON x.id = $1 AND x.gone = $2
), away AS (
	DELETE FROM daimon_topics.member AS m USING changed AS c WHERE NOT c.joins AND m.topic = c.topic AND m.id = c.id AND m.machine = $1
	RETURNING c.n, m.info
), here AS (
	INSERT INTO daimon_topics.member (topic, id, machine, info) SELECT topic, id, $1, info FROM changed WHERE joins
	ON CONFLICT (topic, id, machine) DO UPDATE SET info = excluded.info
), given AS (
	SELECT CASE WHEN joins THEN $7::smallint ELSE $8 END AS kind, c.id AS member, c.name, coalesce(a.info, c.info) AS data, 0 AS tag,
		false AS retain, c.n
	FROM changed AS c LEFT JOIN away AS a USING (n)
	WHERE (joins OR a.n IS NOT NULL) AND NOT EXISTS (
		SELECT FROM daimon_topics.member AS m WHERE m.topic = c.topic AND m.id = c.id AND (joins OR m.machine <> $1))
)` + store

// Change implements topic.Engine.
func (e *Engine) Change(ctx context.Context, changes []topic.Change) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	for _, c := range changes {
		if who := (member{c.Topic, c.Member.ID}); c.Kind == topic.Joined {
			e.members[who] = c.Member.Info
		} else {
			delete(e.members, who)
		}
	}
	return e.again(ctx, func(ctx context.Context) error { return e.change(ctx, e.machine, false, changes) })
}

// change stores changes of a machine, if it is gone or not.
func (e *Engine) change(ctx context.Context, machine int64, gone bool, changes []topic.Change) error {
	var names []string
	var ids, infos [][]byte
	var joins []bool
	for _, c := range changes {
		names, ids = append(names, presence+c.Topic), append(ids, []byte(c.Member.ID))
		infos, joins = append(infos, append([]byte{}, c.Member.Info...)), append(joins, c.Kind == topic.Joined)
	}
	b := &pgx.Batch{} // one transaction
	b.Queue(e.in(lockMachine), machine)
	b.Queue(e.in(lockTopics), names)
	b.Queue(e.in(change), machine, gone, names, ids, infos, joins, int16(topic.Joined), int16(topic.Left))
	err := e.pool.SendBatch(ctx, b).Close()
	wake(e.stored)
	return err
}

// Members implements topic.Engine.
func (e *Engine) Members(ctx context.Context, name string) (all []topic.Member, err error) {
	err = e.again(ctx, func(ctx context.Context) error {
		rows, _ := e.pool.Query(ctx, e.in(`SELECT DISTINCT ON (m.id) m.id, m.info FROM daimon_topics.member AS m
			JOIN daimon_topics.topic AS t ON t.id = m.topic WHERE t.name = $1 ORDER BY m.id, m.machine`), presence+name)
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m topic.Member, err error) {
			var id []byte
			err = row.Scan(&id, &m.Info)
			m.ID = string(id)
			return m, err
		})
		return err
	})
	return all, err
}

// beat says that this machine is there. If others have taken it for dead, its members join again.
func (e *Engine) beat(ctx context.Context) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	var gone bool
	err := e.pool.QueryRow(ctx, e.in(`WITH was AS (SELECT gone FROM daimon_topics.machine WHERE id = $1 FOR UPDATE)
		INSERT INTO daimon_topics.machine (id, batch) OVERRIDING SYSTEM VALUE VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp(), gone = false RETURNING coalesce((SELECT gone FROM was), true)`),
		e.machine, e.batch.Load()).Scan(&gone)
	if err != nil || !gone {
		return err
	}
	var all []topic.Change
	for who, info := range e.members {
		all = append(all, topic.Change{Topic: who.topic, Kind: topic.Joined, Member: topic.Member{ID: who.id, Info: info}})
	}
	return e.change(ctx, e.machine, false, all)
}

// heal has the members leave of machines that have not been seen for long.
func (e *Engine) heal(ctx context.Context) error {
	for _, sql := range []string{
		`DELETE FROM daimon_topics.machine AS x WHERE gone AND seen < clock_timestamp() - interval '1 day'
			AND NOT EXISTS (SELECT FROM daimon_topics.member AS m WHERE m.machine = x.id)`,
		`UPDATE daimon_topics.machine SET gone = true WHERE id = ANY(ARRAY(SELECT id FROM daimon_topics.machine
			WHERE NOT gone AND seen < clock_timestamp() - interval '15 s' FOR UPDATE SKIP LOCKED))`,
	} {
		if _, err := e.pool.Exec(ctx, e.in(sql)); err != nil {
			return err
		}
	}
	rows, _ := e.pool.Query(ctx, e.in(`SELECT id FROM daimon_topics.machine AS x WHERE gone
		AND EXISTS (SELECT FROM daimon_topics.member AS m WHERE m.machine = x.id)`))
	dead, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, machine := range dead {
		if err == nil {
			err = e.leave(ctx, machine)
		}
	}
	return err
}

// leave has all members of a machine leave that is gone.
func (e *Engine) leave(ctx context.Context, machine int64) error {
	for {
		rows, _ := e.pool.Query(ctx, e.in(`SELECT t.name, m.id FROM daimon_topics.member AS m JOIN daimon_topics.topic AS t ON t.id = m.topic
			JOIN daimon_topics.machine AS x ON x.id = m.machine WHERE m.machine = $1 AND x.gone LIMIT 1000`), machine)
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c topic.Change, err error) {
			var id []byte
			err = row.Scan(&c.Topic, &id)
			c.Topic, c.Kind, c.Member.ID = c.Topic[len(presence):], topic.Left, string(id)
			return c, err
		})
		if err != nil || len(all) == 0 {
			return err
		}
		if err := e.change(ctx, machine, true, all); err != nil {
			return err
		}
	}
}

// quit has the members of this machine leave.
func (e *Engine) quit(ctx context.Context) error {
	_, err := e.pool.Exec(ctx, e.in(`UPDATE daimon_topics.machine SET gone = true WHERE id = $1`), e.machine)
	if err == nil {
		err = e.leave(ctx, e.machine)
	}
	if err == nil {
		_, err = e.pool.Exec(ctx, e.in(`DELETE FROM daimon_topics.machine WHERE id = $1`), e.machine)
	}
	return err
}
