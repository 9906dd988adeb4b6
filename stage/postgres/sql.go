package postgres

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
)

// statements are the SQL of a store. All of it is fixed when the store is opened, so that each connection prepares a
// statement once.
type statements struct {
	adapted func(text string) string // to the schema and the clock

	enqueue, unique, uniqueOne, begin, ticks, now, ticked         string
	share, heads, claim, claimed, enter, finish, data, lock, save string
	note, heartbeat, get, notify, announce, fail, failures        string
	pause, unpause, paused                                        string
}

// columns are what scanTask reads. A task in processing is due when its lease ends.
const columns = `id, kind, stage, status, wanted, data, attempt, failure, coalesce(until, due), worker, token, created, changed,
	progress, coalesce(progress_at, '')`

// texts have the schema daimon and the clock clock_timestamp(): see newStatements. That function is volatile, and no
// condition of an index by itself; but (SELECT clock_timestamp()) is one, evaluated once. Statements that do not wait for a
// row, because of SKIP LOCKED, may read the clock at any time; others read it when they have the row.
var texts = statements{
	// The condition is evaluated once, before all rows.
	enqueue: `
		WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
		INSERT INTO daimon.task (kind, stage, data, due, created, changed)
		SELECT t.kind, t.stage, t.data, greatest(now, now + t.after * interval '1 microsecond', t.at), now, now
		FROM clock, unnest($1::text[], $2::text[], $3::bytea[], $6::bigint[], $7::timestamptz[]) AS t (kind, stage, data, after, at)
		WHERE (SELECT count(pg_notify($4, left(hint, 1000))) FROM unnest($5::text[]) AS hint) >= 0
		RETURNING id`,

	unique: uniqueOf(`
		SELECT t.*, nextval($10::text::regclass) AS id
		FROM unnest($1::text[], $2::text[], $3::bytea[], $6::bigint[], $7::timestamptz[], $8::text[], $9::bigint[])
			WITH ORDINALITY AS t (kind, stage, data, after, at, key, within, place)`, `$5::text[]`),

	// For drivers that know no arrays.
	uniqueOne: uniqueOf(`
		SELECT $1::text AS kind, $2::text AS stage, $3::bytea AS data, $5::bigint AS after, $6::timestamptz AS at,
			$7::text AS key, $8::bigint AS within, 1 AS place, $9::bigint AS id`, `ARRAY['kind ' || $1::text]`),

	// The records of periodic tasks are made and locked in the order of their names, in transactions of their own and of Tick.
	begin: `
		INSERT INTO daimon.periodic (name, last) SELECT name, clock_timestamp() FROM unnest($1::text[]) AS name ORDER BY name
		ON CONFLICT (name) DO NOTHING`,

	ticks: `SELECT name, last FROM daimon.periodic WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE`,

	now: `SELECT clock_timestamp()`,

	ticked: `
		UPDATE daimon.periodic AS t SET last = n.last FROM unnest($1::text[], $2::timestamptz[]) AS n (name, last) WHERE t.name = n.name`,

	// It is the statement before claim, in the same transaction. A claim that has waited for a pause sees it, since each
	// statement has a snapshot of its own; claim by itself would have one from before it waited.
	share: `SELECT set_config('enable_seqscan', 'off', true), pg_advisory_xact_lock_shared(KEY_OF_CLAIMS)`,

	// It returns the first due task of each kind, with the token 0 if it is new, and the kinds with tasks that may be
	// lost. The indexes are asked for one kind after the other, so it does not matter how many tasks each has. The
	// orders match task_due and task_watch: by the kind alone the planner takes task_kind, which has all tasks that
	// have ended.
	heads: `
		WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
		due (kind) AS (
			SELECT (SELECT kind FROM daimon.task WHERE due IS NOT NULL ORDER BY kind, fresh LIMIT 1)
			UNION ALL
			SELECT (SELECT kind FROM daimon.task WHERE due IS NOT NULL AND kind > due.kind ORDER BY kind, fresh LIMIT 1)
			FROM due WHERE kind IS NOT NULL
		), running (kind) AS (
			SELECT (SELECT kind FROM daimon.task WHERE watch IS NOT NULL ORDER BY kind, watch LIMIT 1)
			UNION ALL
			SELECT (SELECT kind FROM daimon.task WHERE watch IS NOT NULL AND kind > running.kind ORDER BY kind, watch LIMIT 1)
			FROM running WHERE kind IS NOT NULL
		)
		SELECT k.kind, false, CASE WHEN t.fresh THEN 0 ELSE 1 END, t.due, t.id FROM due AS k CROSS JOIN LATERAL (
			SELECT * FROM (
				(SELECT fresh, due, id FROM daimon.task
				WHERE kind = k.kind AND NOT fresh AND due <= (SELECT now FROM clock) ORDER BY due, id LIMIT 1)
				UNION ALL
				(SELECT fresh, due, id FROM daimon.task
				WHERE kind = k.kind AND fresh AND due <= (SELECT now FROM clock) ORDER BY due, id LIMIT 1)
			) AS two ORDER BY fresh LIMIT 1
		) AS t
		WHERE k.kind <> ALL (ARRAY(SELECT kind FROM daimon.pause))
		UNION ALL
		SELECT kind, true, 1, (SELECT now FROM clock), 0 FROM running AS k
		WHERE EXISTS (SELECT FROM daimon.task WHERE kind = k.kind AND watch <= (SELECT now FROM clock))`,

	// Three parts, in the order of claims: what was lost, what was claimed before or resumed, and what is new, of which
	// only the rest is taken. $14 bounds each kind, and $15 has their priorities: new tasks leave room for old ones of
	// the same or a higher priority. Each part asks for each kind by itself, since the index has the tasks of one kind
	// in order: all that is due would be sorted otherwise. MATERIALIZED keeps the planner from reading a part twice,
	// beyond its limit. FOR UPDATE is allowed in the parts and not in their union. $12 and $13 say
	// where it begins: see claims.
	//
	// Planning it takes longer than executing it, so PostgreSQL has to take its generic plan, which it does when that
	// looks no dearer than one for the parameters. So the parameters are in subqueries: the planner makes the same
	// guess at those in both plans. And hence ANY (ARRAY(...)): with the join alone it expects many rows, and reads the
	// whole table.
	//
	// What was lost and counts as an attempt leaves a record, under the token that it had. Those beyond MaxFailures are
	// left to the next statement fail.
	//
	// The fixed LIMITs tell the planner that few rows are read; no claim of an Engine asks for more. Without them the cost
	// seems to grow with the table. Above jit_above_cost each claim would be compiled, which takes 100 ms.
	claim: `
		WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
		kinds AS MATERIALIZED (
			SELECT * FROM
				unnest((SELECT $1::text[]), (SELECT $13::timestamptz[]), (SELECT $14::bigint[]), (SELECT $15::bigint[]))
				AS k (name, since, most, priority)
			WHERE name <> ALL (ARRAY(SELECT kind FROM daimon.pause))
		), lost AS MATERIALIZED (
			SELECT t.*, k.most, k.priority FROM kinds AS k CROSS JOIN LATERAL (
				SELECT id, kind, stage, until AS since, true AS lost, false AS fresh FROM daimon.task
				WHERE watch <= (SELECT now FROM clock) AND until <= (SELECT now FROM clock) AND id = ANY (ARRAY(
					SELECT id FROM daimon.task
					WHERE (SELECT $12::bool) AND kind = k.name AND watch <= (SELECT now FROM clock) AND until <= (SELECT now FROM clock)
					ORDER BY watch LIMIT 1000
				))
				ORDER BY until, id LIMIT k.most FOR UPDATE SKIP LOCKED
			) AS t
		), again AS MATERIALIZED (
			SELECT t.*, k.most, k.priority FROM kinds AS k CROSS JOIN LATERAL (
				SELECT * FROM (
					SELECT id, kind, stage, due AS since, false AS lost, fresh FROM daimon.task
					WHERE kind = k.name AND NOT fresh AND due <= (SELECT now FROM clock)
					ORDER BY due, id LIMIT 1000 FOR UPDATE SKIP LOCKED
				) AS few LIMIT k.most
			) AS t
		), old AS MATERIALIZED (
			SELECT * FROM (
				SELECT *, row_number() OVER (PARTITION BY kind ORDER BY since, id) AS place
				FROM (SELECT * FROM lost UNION ALL SELECT * FROM again) AS waiting
			) AS ranked
			WHERE place <= most
		), new AS MATERIALIZED (
			SELECT t.*, k.priority FROM kinds AS k CROSS JOIN LATERAL (
				SELECT * FROM (
					SELECT id, kind, stage, due AS since, false AS lost, fresh FROM daimon.task
					WHERE kind = k.name AND fresh AND due >= coalesce(k.since, '-infinity') AND due <= (SELECT now FROM clock)
					ORDER BY due, id LIMIT 1000 FOR UPDATE SKIP LOCKED
				) AS few
				LIMIT greatest(0, least((SELECT $2::bigint) - (SELECT count(*) FROM old WHERE old.priority >= k.priority),
					k.most - (SELECT count(*) FROM old WHERE old.kind = k.name)))
			) AS t
		), first AS MATERIALIZED (
			SELECT id, kind, stage, since, lost, fresh, priority FROM old UNION ALL SELECT * FROM new
			ORDER BY priority DESC, fresh, since, id LIMIT (SELECT $2::bigint)
		), shown AS MATERIALIZED (
			SELECT f.id, f.stage AS found, f.lost, f.fresh AS was_fresh, f.since, f.priority,
				coalesce(s.stage, f.stage) AS at, coalesce(s.attempts, 0) AS attempts
			FROM first AS f LEFT JOIN
				unnest((SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::bool[]), (SELECT $6::text[]), (SELECT $7::integer[]))
				AS s (kind, found, lost, stage, attempts)
				ON s.kind = f.kind AND s.found = f.stage AND s.lost = f.lost
		), claimed AS (
			UPDATE daimon.task AS t SET stage = s.at, status = 'IN_PROCESSING', attempt = t.attempt + s.attempts,
				due = NULL, until = now + $8::bigint * interval '1 microsecond', watch = now + $8::bigint * interval '1 microsecond',
				worker = $9, token = t.token + 1, engine = $10, ticket = $11, changed = now
			FROM shown AS s, clock WHERE t.id = s.id AND t.id = ANY (ARRAY(SELECT id FROM first))
			RETURNING t.*, s.was_fresh, s.since, s.priority, s.found, s.lost AND s.attempts > 0 AS failed
		), recorded AS (
			INSERT INTO daimon.failure (task, token, stage, attempt, failed, failure)
			SELECT id, token - 1, found, attempt, changed, '` + transition.WorkerLost + `' FROM claimed WHERE failed
		)
		SELECT ` + columns + `, was_fresh, since FROM claimed ORDER BY priority DESC, was_fresh, since, id`,

	claimed: `SELECT ` + columns + ` FROM daimon.task
		WHERE watch IS NOT NULL AND engine = $1 AND ticket < $2 AND until > clock_timestamp() ORDER BY id`,

	enter: `
		UPDATE daimon.task SET stage = $3, attempt = $4, changed = clock_timestamp()
		WHERE id = (
			SELECT id FROM daimon.task WHERE id = $1 AND token = $2 AND status = 'IN_PROCESSING' AND wanted = ''
				AND until > clock_timestamp()
			FOR UPDATE SKIP LOCKED
		) RETURNING ` + columns,

	// It finishes the passages to which package transition simply says yes.
	finish: `
		WITH held AS MATERIALIZED (
			SELECT t.id, p.reached, p.last
			FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::bool[]))
				AS p (id, token, at, reached, last)
			CROSS JOIN LATERAL (
				SELECT id FROM daimon.task
				WHERE id = p.id AND token = p.token AND status = 'IN_PROCESSING' AND stage = p.at AND wanted = ''
					AND until > clock_timestamp() AND (p.last OR stage <> p.reached)
				FOR UPDATE SKIP LOCKED
			) AS t
		)
		UPDATE daimon.task AS t SET stage = h.reached, attempt = 0, failure = '', progress = NULL, progress_at = NULL,
			changed = clock_timestamp(),
			status = CASE WHEN h.last THEN 'NORMAL' ELSE t.status END,
			until = CASE WHEN h.last THEN NULL ELSE t.until END,
			watch = CASE WHEN h.last THEN NULL ELSE t.watch END
		FROM held AS h WHERE t.id = h.id
		RETURNING t.id, t.token, t.stage`,

	data: `UPDATE daimon.task SET data = $2 WHERE id = $1`,

	// lock waits for a row, no longer than $2, and reads the clock then. Later the server waits no longer than $2 for the next
	// statement: a worker that has vanished would keep the row locked for two hours otherwise, until TCP gives up. $3 marks
	// the transaction: see commitQuery. The settings end with the transaction.
	lock: `
		WITH settings AS MATERIALIZED (
			SELECT set_config('lock_timeout', $2, true), set_config('idle_in_transaction_session_timeout', $2, true),
				set_config('daimon.lease', $3, true)
		), task AS MATERIALIZED (
			SELECT t.* FROM settings, daimon.task AS t WHERE t.id = $1 FOR UPDATE OF t
		)
		SELECT ` + columns + `, clock_timestamp() FROM task`,

	save: `
		UPDATE daimon.task SET stage = $2, status = $3, wanted = $4, attempt = $5, failure = $6, due = $7, changed = $8,
			until = CASE WHEN $3 = 'IN_PROCESSING' THEN until END,
			watch = CASE WHEN $3 = 'IN_PROCESSING' THEN watch END
		WHERE id = $1`,

	note: `UPDATE daimon.task SET progress = $2, progress_at = $3 WHERE id = $1`,

	// It deletes those beyond the $7 latest. The DELETE does not see the new row.
	fail: `
		WITH added AS (
			INSERT INTO daimon.failure (task, token, stage, attempt, failed, failure) VALUES ($1, $2, $3, $4, $5, $6)
		)
		DELETE FROM daimon.failure WHERE task = $1 AND token <= (
			SELECT token FROM daimon.failure WHERE task = $1 ORDER BY token DESC LIMIT 1 OFFSET $7 - 1)`,

	failures: `SELECT stage, attempt, failed, failure FROM daimon.failure WHERE task = $1 ORDER BY token`,

	// A row that another call has locked is neither renewed nor lost, unless it looked lost before that. No row is
	// waited for, so the order in which they are locked does not matter. A lease that comes without progress has "" as
	// at, or NULL.
	heartbeat: `
		WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now, $3::bigint * interval '1 microsecond' AS length),
		lease AS MATERIALIZED (
			SELECT l.id, l.place, l.progress, l.at, held.id IS NOT NULL AS held, coalesce(held.good, false) AS good, held.wanted,
				coalesce(seen.token = l.token AND seen.status = 'IN_PROCESSING', false) AS seemed_good
			FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $4::bytea[]), (SELECT $5::text[]))
				WITH ORDINALITY AS l (id, token, progress, at, place)
			LEFT JOIN LATERAL (
				SELECT id, wanted, token = l.token AND status = 'IN_PROCESSING' AND until > (SELECT now FROM clock) AS good
				FROM daimon.task WHERE id = l.id FOR UPDATE SKIP LOCKED
			) AS held ON true
			LEFT JOIN LATERAL (SELECT token, status FROM daimon.task WHERE id = l.id) AS seen ON true
		), renewed AS (
			UPDATE daimon.task AS t SET until = now + length,
				watch = CASE WHEN watch < now + length / 2 THEN now + length ELSE least(watch, now + length) END,
				progress = CASE WHEN l.at <> '' AND l.at = t.stage THEN l.progress ELSE t.progress END,
				progress_at = CASE WHEN l.at <> '' AND l.at = t.stage THEN l.at ELSE t.progress_at END
			FROM clock, lease AS l WHERE t.id = l.id AND l.good
		)
		SELECT good, NOT good AND (held OR NOT seemed_good), CASE WHEN good THEN wanted ELSE '' END FROM lease ORDER BY place`,

	get: `SELECT ` + columns + ` FROM daimon.task WHERE id = $1`,

	notify: `SELECT pg_notify($1, left($2, 1000))`,

	// It does not wait for the disk: what gets lost is only a hint.
	announce: `
		SELECT set_config('synchronous_commit', 'off', true), count(pg_notify($1, left(hint, 1000)))
		FROM unnest($2::text[]) AS hint`,

	// It waits until no claim is under way that does not see it, no longer than $2: see share.
	pause: `
		WITH settings AS MATERIALIZED (SELECT set_config('lock_timeout', $2, true)),
		alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(KEY_OF_CLAIMS) FROM settings),
		added AS (INSERT INTO daimon.pause (kind) SELECT $1 FROM alone ON CONFLICT DO NOTHING RETURNING kind)
		SELECT count(*) FROM added`,
	unpause: `
		WITH gone AS (DELETE FROM daimon.pause WHERE kind = $1 RETURNING kind)
		SELECT count(pg_notify($2::text, left('kind ' || kind, 1000))) FROM gone`,
	paused: `SELECT kind FROM daimon.pause`,
}

// uniqueOf returns the statement for tasks of which some have keys, each key once, and the hints to notify of. Keys are
// locked in order, so that no two calls wait for each other. A call that has waited for another one sees its task: ON
// CONFLICT reads the latest version of a row. horizon is how the Within of a new task gets there. The numbers are drawn
// before that, since daimon.key needs them; the numbers of tasks that are not added are lost.
func uniqueOf(given, hints string) string {
	return `
		WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
		given AS MATERIALIZED (` + given + `
		), latest AS (
			INSERT INTO daimon.key AS k (kind, key, task, enqueued, horizon)
			SELECT kind, key, id, now, CASE WHEN within = 0 THEN '-infinity' ELSE now - within * interval '1 microsecond' END
			FROM given, clock WHERE key <> '' ORDER BY kind COLLATE "C", key COLLATE "C"
			ON CONFLICT (kind, key) DO UPDATE SET
				task = CASE WHEN k.enqueued <= excluded.horizon THEN excluded.task ELSE k.task END,
				enqueued = CASE WHEN k.enqueued <= excluded.horizon THEN excluded.enqueued ELSE k.enqueued END,
				horizon = CASE WHEN k.enqueued <= excluded.horizon THEN excluded.horizon ELSE k.horizon END
			RETURNING k.kind, k.key, k.task
		), added AS (
			INSERT INTO daimon.task (id, kind, stage, data, due, created, changed)
			SELECT g.id, g.kind, g.stage, g.data, greatest(now, now + g.after * interval '1 microsecond', g.at), now, now
			FROM clock, given AS g LEFT JOIN latest AS l ON l.kind = g.kind AND l.key = g.key
			WHERE coalesce(l.task, g.id) = g.id
				AND (SELECT count(pg_notify($4::text, left(hint, 1000))) FROM unnest(` + hints + `) AS hint) >= 0
		)
		SELECT coalesce(l.task, g.id) FROM given AS g LEFT JOIN latest AS l ON l.kind = g.kind AND l.key = g.key ORDER BY g.place`
}

// newStatements returns the texts for a schema. clock is the SQL of another clock, for tests, or "".
func newStatements(schema, clock string) statements {
	key := fnv.New64a()
	_, _ = key.Write([]byte("daimon claims of " + schema))
	pairs := []string{
		"daimon.task", pgx.Identifier{schema, "task"}.Sanitize(),
		"daimon.key", pgx.Identifier{schema, "key"}.Sanitize(),
		"daimon.count", pgx.Identifier{schema, "count"}.Sanitize(),
		"daimon.failure", pgx.Identifier{schema, "failure"}.Sanitize(),
		"daimon.periodic", pgx.Identifier{schema, "periodic"}.Sanitize(),
		"daimon.pause", pgx.Identifier{schema, "pause"}.Sanitize(),
		"KEY_OF_CLAIMS", fmt.Sprint(int64(key.Sum64())),
	}
	if clock != "" {
		pairs = append(pairs, "clock_timestamp()", clock)
	}
	s := texts
	s.adapted = strings.NewReplacer(pairs...).Replace
	for _, text := range []*string{
		&s.enqueue, &s.unique, &s.uniqueOne, &s.begin, &s.ticks, &s.now, &s.ticked,
		&s.share, &s.heads, &s.claim, &s.claimed, &s.enter, &s.finish, &s.data, &s.lock, &s.save, &s.note,
		&s.heartbeat, &s.get, &s.fail, &s.failures,
		&s.pause, &s.unpause, &s.paused,
	} {
		*text = s.adapted(*text)
	}
	return s
}
