package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/topic"
)

const history = `SELECT t.last, ` + timeline + `, coalesce((extract(epoch FROM clock_timestamp() - m.at) * 1000000)::bigint, 0), ` + fields + `
	FROM daimon_topics.topic AS t LEFT JOIN daimon_topics.message AS m
		ON m.topic = t.id AND m.number > t.last - $2 AND m.at > clock_timestamp() - $3::bigint * interval '1 microsecond'
	WHERE t.name = $1 ORDER BY m.number`

// History implements topic.Engine. It makes a topic that is not there, since positions need an epoch.
func (e *Engine) History(ctx context.Context, name string, rule topic.Rule) (messages []topic.Stored, last topic.Position, err error) {
	err = e.again(ctx, func(ctx context.Context) error {
		for {
			messages, last, err = e.history(ctx, name, rule)
			if err != nil || last.Epoch != "" {
				return err
			}
			_, err = e.pool.Exec(ctx, e.in(`INSERT INTO daimon_topics.topic (name, last) VALUES ($1, 0) ON CONFLICT DO NOTHING`), name)
			if err != nil {
				return err
			}
		}
	})
	if err == nil {
		err = e.polls.pass(ctx)
	}
	return messages, last, err
}

func (e *Engine) history(ctx context.Context, name string, rule topic.Rule) (messages []topic.Stored, last topic.Position, err error) {
	var f fielded
	var timeline string
	var age int64
	rows, _ := e.pool.Query(ctx, e.in(history), name, rule.History, rule.Age.Microseconds())
	_, err = pgx.ForEachRow(rows, f.targets(&last.Offset, &timeline, &age), func() error {
		s := f.stored(timeline)
		last.Epoch, s.Age = s.Epoch, time.Duration(age)*time.Microsecond
		if n := len(messages); n > 0 && messages[n-1].Offset+1 != s.Offset {
			messages = nil // the retained one is kept for longer
		}
		if s.Offset > 0 {
			messages = append(messages, s)
		}
		return nil
	})
	if n := len(messages); n > 0 && messages[n-1].Offset != last.Offset {
		messages = nil
	}
	return messages, last, err
}
