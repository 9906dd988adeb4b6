package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/topic"
)

// present begins a statement with its snapshot. It has at least one row, perhaps without a message. fields are the columns of that.
const (
	present = `WITH present AS MATERIALIZED (SELECT pg_current_snapshot() AS s, ` + timeline + ` AS timeline)
		SELECT pg_snapshot_xmax(s), ARRAY(SELECT pg_snapshot_xip(s)), timeline, `
	fields = `coalesce(t.id, 0), coalesce(t.name, ''), coalesce(m.number, 0), coalesce(m.kind, 0), coalesce(m.tag, 0),
		coalesce(m.retain, false), m.member, coalesce(m.data, '')`
)

// start reads the retained messages. An empty one says that there is none any more.
const start = present + `coalesce((SELECT max(seq) FROM daimon_topics.message), 0), ` + fields + `
	FROM present LEFT JOIN (daimon_topics.topic AS t JOIN daimon_topics.message AS m ON m.topic = t.id AND m.number = t.retained) ON true`

// What has become visible since a snapshot was stored by transactions that had begun after it, or were running then. If the
// connection was lost, the server may have crashed, and given numbers of transactions again that had stored nothing. So then
// poll goes on after the seq of what was visible.
var (
	poll   = since(`xid >= $1 AND xid < pg_snapshot_xmax(s)`)
	resume = since(`seq > $1`)
)

func since(what string) string {
	return present + `coalesce(m.seq, 0), ` + fields + ` FROM present LEFT JOIN LATERAL (
			SELECT * FROM daimon_topics.message WHERE ` + what + `
			UNION ALL SELECT * FROM daimon_topics.message WHERE xid = ANY($2)
		) AS m ON true LEFT JOIN daimon_topics.topic AS t ON t.id = m.topic ORDER BY m.seq`
}

const (
	// At most so many messages, or a few more than so many bytes, are delivered at once.
	chunkMessages, chunkBytes = 256, 1 << 20
	// leastPause is how long after a poll the next one begins, at the least.
	leastPause = 2 * time.Millisecond
)

// errLost says that the server is another one than before, which may lack what the previous one had.
var errLost = errors.New("postgres: there is another primary server: messages may be lost")

// feed is a call of Feed.
type feed struct {
	e       *Engine
	deliver func([]topic.Stored)
	conn    *pgx.Conn

	begun    bool // deliver was called
	timeline string
	xmax     uint64 // of the snapshot of the last poll
	xip      []uint64
	seq      int64           // the highest one that was visible
	partial  map[int64]int64 // what an unfinished poll has delivered: offsets by topic
}

// Feed implements topic.Engine. It makes connections again that are lost, and goes on where it was, unless the server is another one.
func (e *Engine) Feed(ctx context.Context, rules []topic.Rule, deliver func([]topic.Stored)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	e.mu.Lock()
	e.rules = rules
	e.mu.Unlock()
	f := &feed{e: e, deliver: deliver, partial: map[int64]int64{}}
	for {
		err := e.again(ctx, f.connect)
		if err == nil {
			err = f.run(ctx)
			hangUp(f.conn)
			rest(ctx, 10*time.Millisecond)
		}
		switch {
		case ctx.Err() != nil || errors.Is(err, errLost):
			return err
		case stays(err), f.begun && f.xmax == 0:
			rest(ctx, time.Second)
			return err
		}
	}
}

func (f *feed) connect(ctx context.Context) (err error) {
	if f.conn, err = pgx.ConnectConfig(ctx, f.e.pool.Config().ConnConfig); err != nil {
		return err
	}
	// A poll takes as long as the Broker has no room.
	_, err = f.conn.Exec(ctx, `SET statement_timeout = 0; SET enable_seqscan = off; SET jit = off;
		LISTEN `+pgx.Identifier{f.e.schema}.Sanitize())
	if err != nil {
		hangUp(f.conn)
	}
	return err
}

// run polls until the connection is lost.
func (f *feed) run(ctx context.Context) error {
	err := error(nil)
	if f.xmax == 0 {
		err = f.poll(ctx, start)
	} else {
		err = f.poll(ctx, resume, f.seq, f.xip)
	}
	for err == nil {
		if err = f.e.polls.due(ctx, f.conn); err == nil {
			err = f.poll(ctx, poll, f.xmax, f.xip)
			rest(ctx, leastPause)
		}
	}
	return err
}

// poll delivers the result of a statement. Without an error that is remembered for the next one.
func (f *feed) poll(ctx context.Context, sql string, args ...any) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(f.e.answer, cancel) // unless the Broker takes long
	defer timer.Stop()
	f.e.polls.begin()
	var row fielded
	var xmax uint64
	var xip []uint64
	var timeline string
	var seq int64
	var chunk []topic.Stored
	bytes, highest := 0, f.seq
	deliver := func() {
		timer.Stop()
		f.deliver(chunk)
		f.begun = true
		chunk, bytes = nil, 0
		timer.Reset(f.e.answer)
	}
	rows, _ := f.conn.Query(ctx, f.e.in(sql), args...) // ForEachRow returns its error
	_, err = pgx.ForEachRow(rows, row.targets(&xmax, &xip, &timeline, &seq), func() error {
		if f.timeline != "" && f.timeline != timeline {
			return errLost
		}
		f.timeline, highest = timeline, max(highest, seq)
		id, s := row.topic, row.stored(timeline)
		if id == 0 || int64(s.Offset) <= f.partial[id] {
			return nil
		}
		s.Retained = f.xmax == 0
		f.partial[id] = int64(s.Offset)
		if chunk, bytes = append(chunk, s), bytes+len(s.Data); len(chunk) == chunkMessages || bytes > chunkBytes {
			deliver()
		}
		return nil
	})
	if len(chunk) > 0 || err == nil && !f.begun {
		deliver()
	}
	if err == nil {
		f.xmax, f.xip, f.seq = xmax, xip, highest
		clear(f.partial)
		f.e.polls.end()
	}
	return err
}

// fielded is what a row has in the columns fields.
type fielded struct {
	topic  int64
	s      topic.Stored
	member []byte
}

// targets are for Scan, after others.
func (x *fielded) targets(before ...any) []any {
	return append(before, &x.topic, &x.s.Topic, &x.s.Offset, &x.s.Kind, &x.s.Tag, &x.s.Retain, &x.member, &x.s.Data)
}

func (x fielded) stored(timeline string) topic.Stored {
	x.s.Epoch = epoch(x.topic, timeline)
	if x.s.Kind != topic.Published {
		x.s.Member, x.s.Data = topic.Member{ID: string(x.member), Info: x.s.Data}, nil
	}
	return x.s
}

// polls are the polls of Feed, for calls of History that wait for one.
type polls struct {
	mu    sync.Mutex
	ask   func()          // has the next one begin
	asked []chan struct{} // for each call that waits for the end of the next one
	begun []chan struct{} // the same for the present one
}

func (p *polls) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.asked = append(p.begun, p.asked...), nil // the previous one may have failed
}

func (p *polls) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, done := range p.begun {
		close(done)
	}
	p.begun = nil
}

// due waits until the next poll is to begin: after a hint, a while, or because a call waits for it. The error is that the connection
// is lost.
func (p *polls) due(ctx context.Context, conn *pgx.Conn) error {
	wait, cancel := context.WithTimeout(ctx, pollPause)
	defer cancel()
	p.mu.Lock()
	if p.ask = cancel; len(p.asked) > 0 {
		cancel()
	}
	p.mu.Unlock()
	if _, err := conn.WaitForNotification(wait); err != nil && (wait.Err() == nil || conn.IsClosed()) {
		return err
	}
	return ctx.Err()
}

// pass waits until a poll has delivered that has begun since.
func (p *polls) pass(ctx context.Context) error {
	done := make(chan struct{})
	p.mu.Lock()
	p.asked = append(p.asked, done)
	p.ask()
	p.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
