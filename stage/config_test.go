package stage_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// good is the least that an engine needs.
func good() stage.Config {
	return stage.Config{
		Store:    memory.New(nil),
		Kinds:    map[string]stage.Kind{"report": {Chain: reportChain()}},
		Provider: stage.Processors{},
	}
}

func TestInvalidConfigs(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*stage.Config)
		says   []string
	}{
		"nothing is there": {func(cfg *stage.Config) { *cfg = stage.Config{} },
			[]string{"Store is missing", "Kinds is empty", "Provider is missing"}},
		"an empty kind": {func(cfg *stage.Config) { cfg.Kinds[""] = stage.Kind{Chain: reportChain()} },
			[]string{"Kinds has a kind without a name"}},
		"names that stores cannot keep": {func(cfg *stage.Config) {
			cfg.Worker = "\xff"
			cfg.Kinds["a\x00"] = stage.Kind{Chain: stage.Begin("A\xff").Then("B", "load", "C\x00")}
		}, []string{
			`Kinds has a kind that is not UTF-8 without NUL: "a\x00"`,
			`Kinds["a\x00"].Chain has a name that is not UTF-8 without NUL: "A\xff"`,
			`Kinds["a\x00"].Chain has a name that is not UTF-8 without NUL: "C\x00"`,
			`Worker is not UTF-8 without NUL: "\xff"`,
		}},
		"a nil chain": {func(cfg *stage.Config) { cfg.Kinds["copy"] = stage.Kind{} }, []string{`Kinds["copy"].Chain is missing`}},
		"terms of a kind": {func(cfg *stage.Config) {
			cfg.Kinds["report"] = stage.Kind{Chain: reportChain(), Workers: -1, Attempts: -2, Timeout: -3}
		},
			[]string{`Kinds["report"].Workers is negative: -1`, `Kinds["report"].Attempts is negative: -2`, `Kinds["report"].Timeout is negative: -3ns`}},
		"a nil middleware": {func(cfg *stage.Config) { cfg.Middleware = []stage.Middleware{nil} }, []string{"Middleware has a nil"}},
		"a queue of no kind": {func(cfg *stage.Config) { cfg.Queues = []string{"reports", ""} },
			[]string{`Queues has a queue that no kind has: "reports"`}},
		"negative workers":  {func(cfg *stage.Config) { cfg.Workers = -1 }, []string{"Workers is negative: -1"}},
		"negative attempts": {func(cfg *stage.Config) { cfg.Attempts = -2 }, []string{"Attempts is negative: -2"}},
		"a negative bound":  {func(cfg *stage.Config) { cfg.Timeout = -1 }, []string{"Timeout is negative: -1ns"}},
		"a negative poll":   {func(cfg *stage.Config) { cfg.Poll = -1 }, []string{"Poll is negative: -1ns"}},
		"a negative lease":  {func(cfg *stage.Config) { cfg.Lease = -time.Second }, []string{"Lease is negative: -1s"}},
		"a negative beat":   {func(cfg *stage.Config) { cfg.Heartbeat = -time.Second }, []string{"Heartbeat is negative: -1s"}},
		"a beat too slow":   {func(cfg *stage.Config) { cfg.Heartbeat = 15 * time.Second }, []string{"Heartbeat (15s) must be below Lease (15s)"}},
		"a lease too short": {func(cfg *stage.Config) { cfg.Lease = 10 }, []string{"Lease is less than stores can count: 10ns"}},
		"a beat too long":   {func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = 10e6, 20e6 }, []string{"Heartbeat (20ms) must be below Lease (10ms)"}},
		"all of it": {func(cfg *stage.Config) {
			cfg.Store, cfg.Provider, cfg.Workers, cfg.Attempts, cfg.Poll = nil, nil, -1, -1, -1
			cfg.Kinds = map[string]stage.Kind{"": {}}
			cfg.Lease, cfg.Heartbeat = time.Second, time.Second
		}, []string{
			"Store is missing", "Provider is missing", "Kinds has a kind without a name", `Kinds[""].Chain is missing`,
			"Workers is negative: -1", "Attempts is negative: -1", "Poll is negative: -1ns",
			"Heartbeat (1s) must be below Lease (1s)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			row.change(&cfg)
			e, err := stage.New(cfg)
			require.EqualError(t, err, "stage: Config."+strings.Join(row.says, "\nstage: Config."))
			require.Nil(t, e)
		})
	}
}

func TestShortLeasesHaveHeartbeats(t *testing.T) {
	for _, lease := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, time.Second, time.Hour} {
		cfg := good()
		cfg.Lease = lease
		_, err := stage.New(cfg)
		require.NoError(t, err, "%v", lease)
	}
}

// asked is a Store that only notes what it is asked for.
type asked struct {
	stage.Store
	claim stage.Claim
}

func (s *asked) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	s.claim = c
	return s.Store.Claim(ctx, c)
}

func TestZeroConfig(t *testing.T) {
	s := &asked{Store: memory.New(nil)}
	cfg := good()
	cfg.Store = s
	e, err := stage.New(cfg)
	require.NoError(t, err)
	_, err = e.Fire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, s.claim.Limit)
	require.Equal(t, 15*time.Second, s.claim.Length)
	require.Equal(t, []string{"report"}, s.claim.Kinds)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`^%s:%d:\d+$`, host, os.Getpid()), s.claim.Worker)

	first := s.claim.Worker
	e, err = stage.New(cfg)
	require.NoError(t, err)
	_, err = e.Fire(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first, s.claim.Worker, "two engines have two names")
}

func TestBackoffDoubles(t *testing.T) {
	now := time.Unix(1e9, 0)
	cfg := good()
	cfg.Store, cfg.Attempts, cfg.Logger = memory.New(func() time.Time { return now }), 100, zap.NewNop()
	cfg.Provider = stage.Processors{"load": stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
		return nil, fmt.Errorf("no luck")
	})}
	e, err := stage.New(cfg)
	require.NoError(t, err)
	id, err := e.Enqueue(t.Context(), "report", nil)
	require.NoError(t, err)
	for n := range 80 {
		task := fires(t, e, id)
		want := 5 * time.Minute
		if n < 9 {
			want = min(want, time.Second<<n)
		}
		require.Equal(t, want, task.Due.Sub(now), "after attempt %d", n+1)
		now = task.Due
	}
}
