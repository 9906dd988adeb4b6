package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/topic"
	"github.com/daimon-go/daimon/topic/postgres"
)

var tests = pgserver.NewTests("topics")

// database is the one of this run of the tests.
var database = tests.Database

func TestMain(m *testing.M) {
	if os.Getenv(databaseVariable) != "" {
		fmt.Fprintln(os.Stderr, runProcess())
		os.Exit(1)
	}
	code := tests.Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// server returns the shared server.
func server(t testing.TB) *pgserver.Server {
	t.Helper()
	return tests.Server(t)
}

var schemas atomic.Int64

// newSchema returns the name of a schema of one's own.
func newSchema() string { return fmt.Sprintf(`its %d`, schemas.Add(1)) }

// machine is an Engine and what Feed has delivered.
type machine struct {
	*postgres.Engine
	t      testing.TB
	schema string
	ctx    context.Context
	fed    chan topic.Stored
	begun  atomic.Int64 // how often Feed has delivered for the first time
	losses atomic.Int64 // how often Feed has ended
}

func open(t testing.TB, schema string, rules ...topic.Rule) *machine {
	t.Helper()
	e, err := postgres.Open(t.Context(), server(t).Socket(database), postgres.Options{Schema: schema})
	require.NoError(t, err)
	e.Hold() // time decides nothing
	return feed(t, e, schema, rules...)
}

// feed begins a Feed, and begins it again if it has lost messages.
func feed(t testing.TB, e *postgres.Engine, schema string, rules ...topic.Rule) *machine {
	ctx, cancel := context.WithCancel(t.Context())
	m := &machine{Engine: e, t: t, schema: schema, ctx: ctx, fed: make(chan topic.Stored, 1<<16)}
	begun := make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			first := true
			_ = e.Feed(ctx, rules, func(messages []topic.Stored) {
				if first {
					first = false
					m.begun.Add(1)
				}
				once.Do(func() { close(begun) })
				for _, s := range messages {
					m.fed <- s
				}
			})
			m.losses.Add(1)
		}
	})
	<-begun
	t.Cleanup(func() {
		cancel()
		all.Wait()
		require.NoError(t, e.Close())
	})
	return m
}

// next returns the next messages that Feed delivers: their topics, offsets and data.
func (m *machine) next(n int) (all []string) {
	for range n {
		s := <-m.fed
		switch s.Kind {
		case topic.Joined:
			all = append(all, fmt.Sprintf("%s: %s has joined, %s", s.Topic, s.Member.ID, s.Member.Info))
		case topic.Left:
			all = append(all, fmt.Sprintf("%s: %s has left, %s", s.Topic, s.Member.ID, s.Member.Info))
		default:
			all = append(all, fmt.Sprintf("%s %d %s", s.Topic, s.Offset, s.Data))
		}
	}
	return all
}

func (m *machine) publish(messages ...string) []topic.Position {
	var all []topic.Publication
	for i := 0; i < len(messages); i += 2 {
		all = append(all, topic.Publication{Topic: messages[i], Data: []byte(messages[i+1])})
	}
	at, err := m.Publish(m.ctx, all)
	require.NoError(m.t, err)
	return at
}

// do executes SQL, in which daimon_topics is the schema.
func (m *machine) do(sql string, args ...any) {
	m.t.Helper()
	_, err := m.Pool().Exec(m.ctx, strings.ReplaceAll(sql, "daimon_topics", fmt.Sprintf("%q", m.schema)), args...)
	require.NoError(m.t, err)
}
