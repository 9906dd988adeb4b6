package postgres_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/topic"
	"github.com/daimon-go/daimon/topic/postgres"
)

// proxy is a network before the server.
type proxy struct {
	net.Listener
	all sync.WaitGroup

	mu    sync.Mutex
	links []*link
}

// link is a connection through a proxy.
type link struct {
	client, server net.Conn
	fault          atomic.Int32
}

const (
	none  = iota
	lose  // the next answer does not arrive, and the connection is reset
	mute  // nothing arrives any more, and nobody learns of that
	sever // the connection is reset, and so are all before
	faults
)

func newProxy(t testing.TB) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l}
	address := fmt.Sprintf("127.0.0.1:%d", port(t, server(t)))
	p.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			x := &link{client: client, server: server}
			p.mu.Lock()
			p.links = append(p.links, x)
			p.mu.Unlock()
			p.all.Go(func() { x.pass(client, server, none) })
			p.all.Go(func() { x.pass(server, client, lose) })
		}
	})
	return p
}

func port(t testing.TB, s *pgserver.Server) uint16 {
	cfg, err := pgx.ParseConfig(s.Socket("postgres"))
	require.NoError(t, err)
	return cfg.Port
}

// pass sends on what it reads, but for answers that the fault of the link loses.
func (x *link) pass(from, to net.Conn, loses int32) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		switch fault := x.fault.Load(); {
		case fault == mute:
			_, _ = io.Copy(io.Discard, from)
			return
		case err != nil, loses == lose && fault == lose:
			_, _ = x.client.Close(), x.server.Close()
			return
		}
		_, _ = to.Write(b[:n])
	}
}

// strike gives all connections a fault.
func (p *proxy) strike(fault int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.links {
		x.fault.CompareAndSwap(none, fault)
		if fault == sever {
			_, _ = x.client.Close(), x.server.Close()
		}
	}
}

func (p *proxy) close() {
	_ = p.Close()
	p.strike(sever)
	p.all.Wait()
}

// TestNetwork has a machine publish and listen while its connections are lost in all ways. Each message is stored and delivered
// once, in order.
func TestNetwork(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	near := open(t, schema)
	p := newProxy(t)
	t.Cleanup(p.close)
	url := fmt.Sprintf("postgres://postgres:secret@%s/%s?sslmode=disable&pool_max_conns=30", p.Addr(), database)
	e, err := postgres.OpenImpatient(t.Context(), url, postgres.Options{Schema: schema}, 500*time.Millisecond)
	require.NoError(t, err)
	far := feed(t, e, schema)
	const batches = 24
	var want []string
	for n := range batches {
		p.strike(int32(n % faults))
		at := far.publish("x", fmt.Sprint(2*n), "x", fmt.Sprint(2*n+1))
		require.EqualValues(t, 2*n+1, at[0].Offset)
		want = append(want, fmt.Sprintf("x %d %d", 2*n+1, 2*n), fmt.Sprintf("x %d %d", 2*n+2, 2*n+1))
	}
	require.Equal(t, want, near.next(2*batches))
	require.Equal(t, want, far.next(2*batches))
	require.Zero(t, far.losses.Load())
}

// A publication that the database takes long for, or refuses for a while, is stored once.
func TestSlow(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	m := open(t, schema)
	m.publish("x", "1")
	core, logs := observer.New(zap.InfoLevel)
	slow, err := postgres.OpenImpatient(t.Context(), server(t).Socket(database), postgres.Options{Schema: schema, Logger: zap.New(core)}, time.Second)
	require.NoError(t, err)
	defer slow.Close()
	tx, err := m.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), fmt.Sprintf(`SELECT FROM %q.topic WHERE name = 'x' FOR UPDATE`, schema))
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		_, err := slow.Publish(t.Context(), []topic.Publication{{Topic: "x", Data: []byte("2")}})
		require.NoError(t, err)
	})
	require.Eventually(t, func() bool { return logs.Len() == 1 }, 2*time.Minute, time.Millisecond, "it cannot be stored")
	require.NoError(t, tx.Commit(t.Context()))
	all.Wait()
	m.publish("x", "3")
	require.Equal(t, []string{"x 1 1", "x 2 2", "x 3 3"}, m.next(3))
	require.Equal(t, "topics: the database answers again", logs.All()[1].Message)
}

// TestServer restarts a server, in order and after a crash, and has a standby take its place.
func TestServer(t *testing.T) {
	t.Parallel()
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	srv, err := pgserver.Start(pgserver.ForTests)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	e, err := postgres.Open(t.Context(), srv.Socket("postgres"), postgres.Options{})
	require.NoError(t, err)
	m := feed(t, e, "daimon_topics")
	first := m.publish("x", "1")[0]
	require.NoError(t, srv.Restart())
	m.publish("x", "2")
	for range 50 { // of which the log of the server has nothing
		m.do(`SELECT pg_current_xact_id()`)
	}
	_, _, err = m.History(t.Context(), "x", topic.Rule{}) // after a poll
	require.NoError(t, err)
	srv.Kill()
	require.NoError(t, srv.Start())
	last := m.publish("x", "3")[0]
	require.Equal(t, first.Epoch, last.Epoch)
	require.Equal(t, []string{"x 1 1", "x 2 2", "x 3 3"}, m.next(3))
	require.Zero(t, m.losses.Load())

	require.NoError(t, srv.Standby())
	_, err = srv.Do("postgres", `SELECT pg_promote()`)
	require.NoError(t, err)
	// What is stored before Feed has begun again is not delivered.
	require.Eventually(t, func() bool { return m.begun.Load() > 1 }, 2*time.Minute, time.Millisecond)
	_, err = m.Pool().Exec(t.Context(), `TRUNCATE daimon_topics.message`)
	require.NoError(t, err)
	last = m.publish("x", "4")[0]
	require.NotEqual(t, first.Epoch, last.Epoch)
	require.EqualValues(t, 4, last.Offset)
	_, at, err := m.History(t.Context(), "x", topic.Rule{History: 10, Age: time.Hour})
	require.NoError(t, err)
	require.Equal(t, last, at)
	require.Equal(t, []string{"x 4 4"}, m.next(1))
}
