package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// lease is short, but not so short that a living worker loses it on a machine that does other things too.
const lease = 5 * time.Second

// classes are the requests that faults are aimed at. One with a lock is of a transaction, whose others are row and commit.
var classes = []string{
	"connect", "listen", "enqueue", "claim", "claimed", "enter", "finish", "heartbeat", "lock", "row", "commit", "save", "get",
	"list",
}

// aim is the first fault of a world.
type aim struct {
	class string
	harm  harm
	after bool
}

// aims are all of them, in an order in which neighbours have little in common.
func aims() (all []aim) {
	for _, after := range []bool{false, true} {
		for _, class := range classes {
			for _, h := range harms {
				all = append(all, aim{class, h, after})
			}
		}
	}
	mixed := rand.New(rand.NewPCG(18, 0))
	mixed.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// TestNetworkFaults has two engines work through a network that does harm to chosen requests: each of the aims once, with a few
// other faults. Whatever happens, all tasks end, and each stage was committed exactly once. A lease is lost only to a fault
// that keeps the row locked, or all connections silent, for longer than a lease, or to a machine that is so busy that heartbeats
// are given up before they have their connection; and only a lost lease is an attempt that no processor has failed.
//
// DAIMON_SEED=17 takes one world.
func TestNetworkFaults(t *testing.T) {
	server(t)
	aims, seeds, p := aims(), tier.Choose(0, 14, 200), takePulse(t)
	var hit atomic.Int64
	var all sync.WaitGroup
	next := make(chan int)
	for range 6 { // at a time, which mostly wait
		all.Go(func() {
			for seed := range next {
				a := aims[seed%len(aims)]
				t.Run(fmt.Sprintf("%d %s %s after=%v", seed, a.class, a.harm, a.after), func(t *testing.T) {
					if newFaulty(t, uint64(seed), a, p).run() {
						hit.Add(1)
					}
				})
			}
		})
	}
	only := os.Getenv("DAIMON_SEED")
	for seed := range seeds {
		if only == "" || only == strconv.Itoa(seed) {
			next <- seed
		}
	}
	close(next)
	all.Wait()
	if only == "" {
		require.GreaterOrEqual(t, hit.Load(), int64(seeds*9/10), "of %d worlds, these had the fault that they are about", seeds)
	}
}

// faulty is one world.
type faulty struct {
	*ledger
	random *rand.Rand
	name   string // of its connections
	net    *network
	plan   []*fault
	pulse  *pulse
	begun  time.Time
}

func newFaulty(t *testing.T, seed uint64, a aim, p *pulse) *faulty {
	w := &faulty{
		ledger: newLedger(t, newConfig(t)), random: rand.New(rand.NewPCG(seed, 18)), name: fmt.Sprintf("world %d", seed),
		pulse: p, begun: time.Now(),
	}
	w.net = newNetwork(t, socket(t), w.class)
	w.plan = w.faults(a)
	w.net.harmed(w.plan...)
	return w
}

// socket connects to the server without a password, whose check takes long.
func socket(t testing.TB) func() (net.Conn, error) {
	cfg, err := pgx.ParseConfig(server(t).Socket(database))
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	return func() (net.Conn, error) { return net.Dial(network, address) }
}

// class names a statement.
func (w *faulty) class(sql string) string {
	switch {
	case strings.HasPrefix(sql, "LISTEN"):
		return "listen"
	case strings.Contains(sql, ".step"):
		return "row"
	case strings.HasSuffix(sql, "COMMIT"):
		return "commit"
	}
	return w.direct.Named(sql)
}

// faults returns the plan of a world: one aimed, and a few that only end connections, which costs no lease.
func (w *faulty) faults(a aim) []*fault {
	often := map[string]int{"connect": 2, "listen": 1, "claimed": 1, "save": 1, "get": 1, "list": 1, "enqueue": 4, "heartbeat": 2}
	nth := func(class string) int {
		if n, ok := often[class]; ok {
			return 1 + w.random.IntN(n)
		}
		return 1 + w.random.IntN(7)
	}
	plan := []*fault{{class: a.class, nth: nth(a.class), after: a.after, harm: a.harm}}
	if a.class == "claimed" { // which is asked for after the lost answer of a claim
		plan = append(plan, &fault{class: "claim", nth: 2, after: true, harm: drop})
	}
	for range w.random.IntN(4) {
		class := classes[w.random.IntN(len(classes))]
		if class == a.class {
			continue
		}
		h := []harm{drop, reset, tear, delay}[w.random.IntN(4)]
		plan = append(plan, &fault{class: class, nth: nth(class), after: w.random.IntN(2) == 0, harm: h})
	}
	return plan
}

// store opens a store behind the network, which may take several tries.
func (w *faulty) store() (s *postgres.Store) {
	connection := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable&pool_max_conns=6&application_name=%s",
		w.net.port(), database, url.QueryEscape(w.name))
	w.persist(func(ctx context.Context) (err error) {
		s, err = postgres.Open(ctx, postgres.Config{Connection: connection, Schema: w.cfg.Schema})
		return err
	})
	return s
}

// persist calls f until it returns nil.
func (w *faulty) persist(f func(context.Context) error) {
	var err error
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), lease)
		err = f(ctx)
		if cancel(); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.NoError(err)
}

// engine is one behind the network.
func (w *faulty) engine(s *postgres.Store) *stage.Engine {
	cfg := w.config(s, 300*time.Millisecond)
	cfg.Logger = zaptest.NewLogger(w.t)
	e, err := stage.New(cfg)
	w.NoError(err)
	return e
}

// run reports whether the aimed fault came.
func (w *faulty) run() bool {
	one, two := w.store(), w.store()
	first, second := w.engine(one), w.engine(two)
	ctx, stop := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	all.Go(func() { w.NoError(first.Run(ctx)) })
	all.Go(func() { w.NoError(second.Run(ctx)) })
	w.requests(first, two)
	w.Eventually(func() bool { return w.net.quiet() && w.ended() }, 2*time.Minute, 20*time.Millisecond, "%v", w)
	stop()
	all.Wait()
	w.NoError(errors.Join(one.Close(), two.Close()))
	w.net.close()
	w.verdict(w.mayLose(), w)
	disconnected(w.t, w.direct, w.name)
	return w.plan[0].hit
}

// requests enqueues, and makes requests, until they were answered. Of those whose answer was lost, some are made twice.
func (w *faulty) requests(e *stage.Engine, s *postgres.Store) {
	ids := map[string]stage.ID{}
	for _, name := range []string{"plain", "fails", "suspended", "cancelled", "other"} {
		w.persist(func(ctx context.Context) (err error) {
			ids[name], err = e.Enqueue(ctx, "job", []byte(name))
			return err
		})
	}
	w.persist(func(ctx context.Context) error { _, err := s.Suspend(ctx, ids["suspended"]); return err })
	w.persist(func(ctx context.Context) error { _, err := s.Cancel(ctx, ids["cancelled"]); return err })
	w.persist(func(ctx context.Context) error { _, err := s.Get(ctx, ids["suspended"]); return err })
	w.persist(func(ctx context.Context) error { _, err := s.List(ctx, stage.Selection{}); return err })
	w.persist(func(ctx context.Context) error { _, err := s.Resume(ctx, ids["suspended"], false); return err })
}

// mayLose is how many leases the plan may have cost: a partition all that the engines held, and a transaction that stands
// still with the lock of a row that one. It may have been the machine as well.
func (w *faulty) mayLose() (n int) {
	if w.pulse.missed(w.begun) {
		n += 4 * 6
	}
	for _, f := range w.plan {
		held := slices.Contains([]string{"lock", "row", "commit", "save"}, f.class)
		switch {
		case f.hit && f.harm == partition:
			n += 6
		case f.hit && held && (f.harm == silence || f.harm == late):
			n++
		}
	}
	return n
}

func (w *faulty) String() string {
	text := w.name
	for _, f := range w.plan {
		text += fmt.Sprintf("; %s %d %s after=%v hit=%v", f.class, f.nth, f.harm, f.after, f.hit)
	}
	return fmt.Sprint(text, " ", w.net.counts())
}

// pulse says when the machine was too busy for heartbeats.
type pulse struct {
	mu     sync.Mutex
	latest time.Time // when that was so
}

// takePulse connects to the server, again and again until the test ends, as a heartbeat does that has no connection.
func takePulse(t testing.TB) *pulse {
	p := &pulse{}
	connection := server(t).Socket(database)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			if conn, err := pgx.Connect(ctx, connection); err == nil {
				_, _ = conn.Exec(ctx, `SELECT 1`)
				_ = conn.Close(context.Background())
			}
			if time.Since(begun) > lease/10 { // the interval of heartbeats
				p.mu.Lock()
				p.latest = time.Now()
				p.mu.Unlock()
			}
			select {
			case <-time.After(lease / 25):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { stop(); all.Wait() })
	return p
}

// missed reports whether that was so since then.
func (p *pulse) missed(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest.After(since)
}
