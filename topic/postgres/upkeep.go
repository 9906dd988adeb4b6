package postgres

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/topic"
)

const (
	// upkeepPause is how long after a part of the upkeep the next one comes. In every fifth the machine says that it is there.
	upkeepPause = time.Second
	beatEvery   = 5
	// At most so many topics are looked at, and so many messages deleted, in one statement.
	topicsAtOnce, deletesAtOnce = 1000, 10_000
)

// upkeep says that this machine is there, looks after machines that are not, and deletes what no rule asks for.
func (e *Engine) upkeep() {
	for n := 1; ; n++ {
		if rest(e.life, upkeepPause); e.life.Err() != nil {
			return
		}
		if !e.keeping.TryLock() {
			continue
		}
		ctx, cancel := context.WithTimeout(e.life, e.answer)
		if n%beatEvery == 0 {
			_ = e.beat(ctx) // what fails is done the next time
			_ = e.heal(ctx)
		}
		_ = e.tidy(ctx)
		cancel()
		e.keeping.Unlock()
	}
}

// expire deletes messages that are older than a minute, and beyond the number or the age of a rule; but not retained ones. It does
// so only on one machine at a time.
const expire = `WITH old AS (
	SELECT m.topic, m.number FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS r(id, most, age) JOIN daimon_topics.topic AS t USING (id)
	CROSS JOIN LATERAL (SELECT t.last - r.most AS number, clock_timestamp() - r.age * interval '1 microsecond' AS at,
		clock_timestamp() - interval '1 minute' AS least) AS until
	CROSS JOIN LATERAL (SELECT number, at FROM daimon_topics.message WHERE topic = t.id ORDER BY number LIMIT 1) AS first
	CROSS JOIN LATERAL (
		SELECT topic, number FROM daimon_topics.message AS m
		WHERE topic = t.id AND at < least AND (m.number <= until.number OR m.at < until.at)
			AND (m.number IS DISTINCT FROM t.retained OR data = '' AND m.at < clock_timestamp() - interval '1 day')
		ORDER BY m.number LIMIT $4) AS m
	WHERE first.at < least AND (first.number <= until.number OR first.at < until.at) AND (SELECT pg_try_advisory_xact_lock($5, 2)) LIMIT $4
)
DELETE FROM daimon_topics.message AS m USING old WHERE m.topic = old.topic AND m.number = old.number`

// forget deletes topics that nobody has used for a week. If such a topic is used again it has another epoch.
const forget = `DELETE FROM daimon_topics.topic AS t WHERE id = ANY($1) AND changed < clock_timestamp() - interval '7 days'
	AND NOT EXISTS (SELECT FROM daimon_topics.message AS m WHERE m.topic = t.id)
	AND NOT EXISTS (SELECT FROM daimon_topics.member AS m WHERE m.topic = t.id)`

// tidy deletes what no rule asks for, of some of the topics.
func (e *Engine) tidy(ctx context.Context) error {
	e.mu.Lock()
	rules := e.rules
	e.mu.Unlock()
	if rules == nil {
		return nil
	}
	var id int64
	var name string
	var ids, most, ages []int64
	rows, _ := e.pool.Query(ctx, e.in(`SELECT id, name FROM daimon_topics.topic WHERE id > $1 ORDER BY id LIMIT $2`), e.tidied, topicsAtOnce)
	_, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		rule := topic.Rule{Age: math.MaxInt64}
		if i := slices.IndexFunc(rules, func(r topic.Rule) bool { return topic.Match(r.Filter, name) }); i >= 0 {
			rule = rules[i]
		}
		ids, most, ages = append(ids, id), append(most, int64(rule.History)), append(ages, rule.Age.Microseconds())
		return nil
	})
	if err == nil {
		_, err = e.pool.Exec(ctx, e.in(forget), ids)
	}
	if err != nil {
		return err
	}
	tag, err := e.pool.Exec(ctx, e.in(expire), ids, most, ages, deletesAtOnce, e.key)
	switch {
	case err != nil || tag.RowsAffected() == deletesAtOnce: // there may be more
	case len(ids) < topicsAtOnce:
		e.tidied = 0
	default:
		e.tidied = ids[len(ids)-1]
	}
	return err
}
