package postgres_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/internal/pgserver"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// troubled is a server of one's own, and two engines whose tasks it keeps while it is in trouble.
type troubled struct {
	*ledger
	server *pgserver.Server
	pulse  *pulse
	begun  time.Time
}

func newTroubled(t *testing.T) *troubled {
	t.Helper()
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	s, err := pgserver.Start(pgserver.ForTests)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.Create("tasks")
	require.NoError(t, err)
	return &troubled{newLedger(t, postgres.Config{Connection: s.Socket("tasks")}), s, takePulse(t), time.Now()}
}

// mayLose is how many leases may be lost in four outages of which the longest took that long: all that the engines held if the
// machine was very busy, else none.
func (w *troubled) mayLose(down time.Duration) int {
	if down > lease/2 || w.pulse.missed(w.begun) {
		return 4 * 6
	}
	return 0
}

// during has two engines over cfg work while trouble happens, until all tasks have ended.
func (w *troubled) during(cfg postgres.Config, tasks int, change func(*stage.Config), trouble func()) {
	ctx, stop := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	var stores []*postgres.Store
	for range 2 {
		s, err := postgres.Open(ctx, cfg)
		w.NoError(err)
		stores = append(stores, s)
		c := w.config(s, 100*time.Millisecond)
		change(&c)
		e, err := stage.New(c)
		w.NoError(err)
		all.Go(func() { w.NoError(e.Run(ctx)) })
	}
	_, err := w.direct.Enqueue(ctx, slices.Repeat([]stage.NewTask{{Kind: "job", Stage: "NEW"}}, tasks)...)
	w.NoError(err)
	trouble()
	w.direct.Pool().Reset() // whose connections are lost
	w.settled()
	stop()
	all.Wait()
	for _, s := range stores {
		w.NoError(s.Close())
	}
}

// own is the configuration of the engines' stores.
func (w *troubled) own() postgres.Config {
	return postgres.Config{Connection: w.server.Socket("tasks") + " pool_max_conns=6 application_name=troubled"}
}

// works waits until so many rows more are written, which says that the engines are at it.
func (w *troubled) works(more int) {
	w.direct.Pool().Reset()
	before := w.count(`its.step`)
	w.Eventually(func() bool { return w.count(`its.step`) >= before+more }, time.Minute, 10*time.Millisecond)
}

func nothing(*stage.Config) {}

// TestRestarted ends all connections, again and again, and restarts the server, in order and as a crash does. Leases outlast
// that.
func TestRestarted(t *testing.T) {
	t.Parallel()
	w := newTroubled(t)
	down := time.Duration(0)
	w.during(w.own(), 120, nothing, func() {
		for range 10 {
			time.Sleep(rand.N(200 * time.Millisecond))
			require.NoError(t, w.server.Terminate())
		}
		for _, crash := range []bool{false, true, false, true} {
			w.works(10)
			begun := time.Now()
			if crash {
				w.server.Kill()
			}
			require.NoError(t, w.server.Restart())
			down = max(down, time.Since(begun))
		}
	})
	w.verdict(w.mayLose(down), down)
	disconnected(w.t, w.direct, "troubled")
}

// TestServerStandsStill stops all processes of the server for three leases, and longer than its own limits. Both engines lose
// what they hold, once, and nothing else.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	w := newTroubled(t)
	const lease = 2 * brief // no more are lost because the machine does other things too
	brisk := func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = lease, lease/20 }
	w.during(w.own(), 60, brisk, func() {
		w.works(10)
		w.server.Pause()
		time.Sleep(3 * lease)
		w.server.Continue()
		w.direct.Pool().Reset()
		w.Eventually(func() bool { return w.lost() > 0 }, 4*lease, 10*time.Millisecond, "they are claimed again soon")
	})
	w.verdict(max(6, w.mayLose(0)), "paused")
	disconnected(w.t, w.direct, "troubled")
}

// TestPoolerRestarted kills a PgBouncer in transaction mode, and starts it again. That costs no lease.
func TestPoolerRestarted(t *testing.T) {
	t.Parallel()
	w := newTroubled(t)
	tier.Tool(t, "pgbouncer")
	b, err := w.server.Bounce(6)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	cfg := postgres.Config{Connection: b.URL("tasks") + "&pool_max_conns=6&application_name=troubled", Pooler: true}
	w.during(cfg, 80, nothing, func() {
		for _, kill := range []bool{true, false, true} {
			w.works(20)
			if kill {
				b.Kill()
			} else {
				require.NoError(t, b.Stop())
			}
			require.NoError(t, b.Start())
		}
	})
	w.verdict(w.mayLose(0), "the pooler restarted")
	require.NoError(t, b.Stop()) // it keeps connections to the server
	disconnected(w.t, w.direct, "troubled")
}

// TestGone has the server gone for ten seconds, or three in the tier full, with engines as they are by default. No lease is lost,
// and no attempt. Of a hundred failures each engine logs a line, and one when they are over.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newTroubled(t)
	core, logs := observer.New(zapcore.DebugLevel)
	byDefault := func(cfg *stage.Config) {
		cfg.Workers, cfg.Lease, cfg.Heartbeat, cfg.Poll, cfg.Backoff, cfg.Logger = 0, 0, 0, 0, nil, zap.New(core)
	}
	w.during(w.own(), 100, byDefault, func() {
		w.works(20)
		require.NoError(t, w.server.Stop())
		time.Sleep(tier.Choose(0, 3*time.Second, 10*time.Second))
		require.NoError(t, w.server.Start())
	})
	w.verdict(0, "gone")
	disconnected(w.t, w.direct, "troubled")
	for _, entry := range logs.All() {
		t.Log(entry.Level, entry.Message, entry.ContextMap())
	}
	require.LessOrEqual(t, logs.Len(), 2*2)
}
